// Generator: the source of random numbers, with the numbers of PyTorch's CPU generator for the same
// seed (mt19937). Called by the random ops and by bindings.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>

#include "tensor/ivalue.h"

namespace prong {

class Generator final : public ObjectBase {
 public:
  static constexpr uint64_t kDefaultSeed = 67280421310721;
  explicit Generator(uint64_t seed = kDefaultSeed) { manual_seed(seed); }
  std::string describe() const override { return "Generator"; }

  void manual_seed(uint64_t seed);
  uint64_t seed();  // from the system's randomness
  uint64_t initial_seed();
  // As PyTorch stores it: a uint8 tensor of 5056 bytes.
  Tensor state();
  void set_state(const Tensor& state);  // kType, kRuntime on anything else
  Ref<Generator> clone();

  // Draws of one op happen under this lock.
  std::mutex& mutex() { return mutex_; }

  // ── with the lock held ──
  uint32_t random() {
    if (--left_ == 0) twist();
    return temper(words_[next_++]);
  }
  uint64_t random64() {
    const uint64_t high = random();
    return high << 32 | random();
  }
  void random_words(uint32_t* out, int64_t n);  // n times random()
  double uniform() {
    return static_cast<double>(random64() & ((uint64_t{1} << 53) - 1)) * 0x1p-53;
  }  // [0, 1)
  float uniform_float() { return static_cast<float>(random() & ((1u << 24) - 1)) * 0x1p-24f; }
  double normal();  // mean 0, deviation 1; pairs, of which the second is kept

  // Of the process; used where an op is given no generator.
  static const Ref<Generator>& default_generator();

 private:
  static constexpr int kWords = 624;
  static uint32_t temper(uint32_t y) {
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
  }
  void twist();
  void seed_words(uint64_t seed);

  std::mutex mutex_;
  uint64_t seed_ = 0;
  int left_ = 1;  // words until the next twist
  uint32_t next_ = 0;
  uint32_t words_[kWords];
  std::optional<double> next_normal_;
  std::optional<float> next_float_normal_;  // kept for PyTorch's state format only
};

// The generator of an op's argument: the default one for None.
Ref<Generator> generator_from(const IValue& argument);

}  // namespace prong
