// What a plan asks of a call, in words: its guards, and the first of them that a call does not
// meet, with both values. Called by bindings/ for logs, explain() and guard callbacks.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "capture/plan.h"

namespace prong::capture {

struct GuardText {
  std::string what;  // "global 'scale' of module m"
  std::string was;   // what the recording saw
  std::string now;   // what the call brings; of a guard that is only described: empty
  Place place;       // where the recording read it; no file: nobody asked for places then
};

// "global 'scale' of module m was 2.0, is 3.0 (read at model.py:12 in forward)"
std::string to_text(const GuardText& g);

class PlanReader {
 public:
  // `callable`: the compiled function, for the names of its parameters.
  PlanReader(Plan& plan, PyObject* callable) : plan_(plan), callable_(callable) {}
  std::vector<GuardText> guards() const;
  // Nothing: the call fits.
  std::optional<GuardText> first_misfit(PyObject* const* args, size_t count,
                                        PyObject* kwnames) const;

 private:
  std::string argument(int32_t index) const;
  std::string item(size_t index) const;
  std::string item_text(const ArgumentContainer& c, Py_ssize_t k) const;
  std::string held_text(const HeldTensor& h) const;
  std::string source(const TensorSource& s) const;
  Place place(int32_t index) const;
  GuardText text_of(const Guard& g) const;
  GuardText misfit_of(const Guard& g, PyObject* const* args) const;
  std::optional<GuardText> misfit_of(const TensorGuard& t, PyObject* const* args) const;
  GuardText misfit_of_numbers(const Plan::Found& found) const;
  std::string number_text(int32_t number, int depth = 0) const;

  Plan& plan_;
  PyObject* callable_;
};

}  // namespace prong::capture
