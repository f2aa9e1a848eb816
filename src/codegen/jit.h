// LLVM IR text to machine code of this process. Called by what generates kernels; free of LLVM.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace prong::codegen {

// The machine code of one module. It is freed with its last owner, so who holds a function pointer
// taken from it must hold the code as well. May be used and freed on any thread, also after the
// Jit.
class Code {
 public:
  virtual ~Code() = default;
  // The address of a function that the module defines; throws kInternal where there is none.
  virtual void* find(std::string_view function) const = 0;

  template <class Function>
  Function* function(std::string_view name) const {
    return reinterpret_cast<Function*>(find(name));
  }
};

struct JitOptions {
  int level = 2;        // as in -O2: 0 to 3
  int vector_bits = 0;  // the preferred vector width; 0 leaves it to LLVM's model of this CPU
};

// A compiler for the CPU it runs on. Arithmetic is strict: nothing is contracted or reassociated
// that the IR does not ask for, and no call of a math library is made up or folded.
class Jit {
 public:
  explicit Jit(JitOptions options = {});
  ~Jit();
  Jit(const Jit&) = delete;
  Jit& operator=(const Jit&) = delete;

  // Makes a function of this process callable from IR that is compiled later. memcpy, memmove and
  // memset, which LLVM itself calls, are there from the start; nothing else of the process is.
  void define(std::string_view name, void* address);

  // Parses, verifies, optimises and compiles a module. Throws kInternal, naming the module, with
  // line and column where the text is wrong and with the names of functions that nobody defined.
  // Modules do not see each other's functions. Any number of threads may compile at once.
  std::shared_ptr<const Code> compile(std::string_view ir, std::string_view name);

  // The module after optimisation, as text: for PRONG_LOG=codegen and for tests.
  std::string optimized(std::string_view ir, std::string_view name) const;

  // What the code is made for, as LLVM names it: part of the key of code kept on disk.
  const std::string& cpu() const;
  const std::string& features() const;

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared with the Code made, which may outlive this object
};

}  // namespace prong::codegen
