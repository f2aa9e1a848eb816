// Tensors and values of C++ programs that run what Python saved. Implemented by src/api.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace prong::api {

enum class DType : uint8_t {
  kBool,
  kUInt8,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kFloat16,
  kBFloat16,
  kFloat32,
  kFloat64,
};

// A handle: copies share the numbers. Errors are exceptions derived from std::exception, whose
// what() names the op or place, what was given and what was expected.
class Tensor {
 public:
  Tensor();  // of no elements, float32, shape [0]
  static Tensor zeros(const std::vector<int64_t>& sizes, DType dtype = DType::kFloat32);
  // A copy of numbers in row-major order.
  static Tensor from(const std::vector<float>& numbers, const std::vector<int64_t>& sizes);
  static Tensor from(const std::vector<double>& numbers, const std::vector<int64_t>& sizes);
  static Tensor from(const std::vector<int64_t>& numbers, const std::vector<int64_t>& sizes);

  DType dtype() const;
  std::vector<int64_t> sizes() const;
  int64_t numel() const;
  bool is_contiguous() const;
  Tensor contiguous() const;  // itself if it is
  Tensor to(DType dtype) const;
  // The numbers, for reading and writing; row-major if contiguous. Raises if T is not the dtype's.
  template <class T>
  T* data() const;
  std::string str() const;  // as Python prints it

 private:
  friend struct Access;
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

// What scripts take and give: None, numbers, strings, tensors, and lists, tuples and dicts of them.
class Value {
 public:
  Value();  // None
  Value(bool b);
  Value(int i);
  Value(int64_t i);
  Value(double d);
  Value(const char* s);
  Value(const std::string& s);
  Value(const Tensor& t);
  static Value list(const std::vector<Value>& items);
  static Value tuple(const std::vector<Value>& items);
  static Value dict(const std::vector<std::pair<Value, Value>>& items);

  bool is_none() const;
  bool is_tensor() const;
  // Raise TypeError's kind of message if it is something else; numbers convert as in Python.
  bool to_bool() const;
  int64_t to_int() const;
  double to_double() const;
  std::string to_string() const;
  Tensor to_tensor() const;
  std::vector<Value> items() const;                      // of a list or tuple
  std::vector<std::pair<Value, Value>> entries() const;  // of a dict, in its order
  std::string type_name() const;                         // "Tensor", "int", "List", ...
  std::string str() const;                               // as Python's repr

 private:
  friend struct Access;
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace prong::api
