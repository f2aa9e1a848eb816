// Scripted and traced functions and modules that Python saved with jit.save, in C++ programs.
// Implemented by src/api.
//
//   const auto model = prong::api::Module::load("model.pt");
//   const auto y = model({prong::api::Tensor::from({1, 2, 3}, {1, 3})}).to_tensor();
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "prong/value.h"

namespace prong::api {

// A result that is on its way; wait() gives it or raises what the call raised, any number of times.
class Pending {
 public:
  Value wait() const;
  bool is_done() const;

 private:
  friend struct Access;
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

// A module, or a single function: then `call` and `fork` mean that. May be used by many threads.
class Module {
 public:
  static Module load(const std::string& path);
  static Module from_bytes(std::string_view bytes);

  // Arguments in the order of the signature; trailing ones with defaults may be left out.
  Value operator()(const std::vector<Value>& arguments) const { return call(arguments); }
  Value call(const std::vector<Value>& arguments, const std::string& method = "forward") const;
  // The same on Prong's threads, at once.
  Pending fork(const std::vector<Value>& arguments, const std::string& method = "forward") const;

  std::vector<std::string> methods() const;
  std::string signature(const std::string& method = "forward") const;
  // Attributes by dotted path: "encoder.weight".
  Value attribute(const std::string& path) const;
  void set_attribute(const std::string& path, const Value& value) const;

 private:
  friend struct Access;
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

// How many threads work at once, forks and loops inside ops together.
void set_num_threads(int n);
int num_threads();

}  // namespace prong::api
