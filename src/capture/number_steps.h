// The Python numbers of a plan that may be others at each call: read from outside, sizes of
// tensors, values of tensors, or computed of such. Noted by numbers.cpp and sizes.cpp while a call
// is recorded, found again by number_steps.cpp in each replay.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "capture/kept.h"
#include "capture/rehearsal.h"
#include "capture/trace.h"

namespace prong::capture {

// Where an input of the first or a later program comes from.
struct TensorSource {
  enum class Kind : uint8_t { kArgument, kObject, kProgram, kGradient };
  Kind kind;
  int32_t index = 0;   // the argument, the program, or whose gradient (in Plan::leaves)
  int32_t output = 0;  // of that program
  int32_t object = 0;  // in Plan::objects
};

struct NumberStep {
  enum class Kind : uint8_t {
    kArgument,   // argument `index`
    kDict,       // `object`, a dict, at `key`; of a tuple of `size` there item `index`
    kCell,       // what the cell `object` holds
    kConstant,   // `object`
    kOperator,   // `index` for apply_operator, of the numbers `of`
    kCall,       // `object`, a builtin function, of the numbers `of`; in a tuple if `is_packed`
    kSize,       // of `tensor` from outside, dimension `index`; -1: how many elements
    kRehearsed,  // the answer to question `index` of the rehearsal
    kStep,       // what the Python step at `index` of the programs gave
    kItem,       // element `index` of `tensor`, once `after` programs have run; -1: its only one
  };
  Kind kind;
  int32_t index = 0;
  int32_t size = 0;
  std::vector<int32_t> of{};
  TensorSource tensor{};
  Kept object{}, key{};
  PyTypeObject* type = nullptr;  // a number of another type does not fit
  int32_t after = 0;             // found when so many programs have run
  int32_t place = -1;            // in Plan::places
  bool is_packed = false, is_needed = true;
  bool is_safe = false;  // a call that works for all numbers of these types
  // Of kDict: the value that the dict had at that version.
  uint64_t version = 0;
  Kept last{};

  bool is_from_outside() const { return kind < Kind::kConstant || kind == Kind::kSize; }
};

struct NumberCheck {
  int32_t number;
  Kept expected;
  int32_t place = -1;  // where Python needed the number
};

// Codes of apply_operator: arguments of BINARY_OP, then those of COMPARE_OP, then unary ones.
inline constexpr int kCompare = 32;
inline constexpr int kPositive = 48, kNegative = 49, kInvert = 50, kNot = 51, kTruth = 52;
inline bool is_unary(int code) { return code >= kPositive; }
PyObject* apply_operator(int code, PyObject* a, PyObject* b);
// "+", "<", "not"
const char* operator_text(int code);
// By the numbers of a trace: might an op refuse another one there?
std::vector<bool> refusable_numbers(const Trace& trace);
std::optional<double> value_of(const IValue& number);  // an int, a float, or such a wrapped one
// Can it fail for some ints or floats?
bool never_fails(int code);

}  // namespace prong::capture
