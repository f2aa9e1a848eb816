// mt19937 and the state format of PyTorch's CPU generator; see random.h.
#include "ops/random.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <random>

namespace prong {

namespace {

// The bytes of PyTorch's state, field by field. Words are stored as 64 bits each.
struct StateBytes {
  uint64_t seed;
  int32_t left, seeded;
  uint64_t next;
  uint64_t words[624];
  double normal_x, normal_y, normal_rho;
  int32_t normal_is_valid, padding;
  float next_float_normal;
  uint8_t has_next_float_normal, more_padding[3];
};
static_assert(sizeof(StateBytes) == 5056);

}  // namespace

void Generator::seed_words(uint64_t seed) {
  seed_ = seed;
  words_[0] = static_cast<uint32_t>(seed);
  for (uint32_t i = 1; i < kWords; ++i)
    words_[i] = 1812433253u * (words_[i - 1] ^ (words_[i - 1] >> 30)) + i;
  left_ = 1;
  next_ = 0;
  next_normal_.reset();
  next_float_normal_.reset();
}

void Generator::manual_seed(uint64_t seed) {
  std::lock_guard lock(mutex_);
  seed_words(seed);
}

uint64_t Generator::seed() {
  std::random_device device;
  // 53 bits, so that the seed survives a passage through a double.
  const uint64_t seed =
      (static_cast<uint64_t>(device()) << 32 | device()) & ((uint64_t{1} << 53) - 1);
  manual_seed(seed);
  return seed;
}

uint64_t Generator::initial_seed() {
  std::lock_guard lock(mutex_);
  return seed_;
}

void Generator::twist() {
  constexpr int kShift = 397;
  const auto mixed = [](uint32_t high, uint32_t low, uint32_t far) {
    const uint32_t y = (high & 0x80000000u) | (low & 0x7fffffffu);
    return far ^ (y >> 1) ^ (low & 1u ? 0x9908b0dfu : 0u);
  };
  for (int i = 0; i < kWords - kShift; ++i)
    words_[i] = mixed(words_[i], words_[i + 1], words_[i + kShift]);
  for (int i = kWords - kShift; i < kWords - 1; ++i)
    words_[i] = mixed(words_[i], words_[i + 1], words_[i + kShift - kWords]);
  words_[kWords - 1] = mixed(words_[kWords - 1], words_[0], words_[kShift - 1]);
  left_ = kWords;
  next_ = 0;
}

void Generator::random_words(uint32_t* out, int64_t n) {
  while (n > 0) {
    // left_ is 1 when none is ready, else one more than the number of words until the end.
    if (left_ == 1) {
      *out++ = random();
      --n;
      continue;
    }
    const int64_t ready = std::min<int64_t>(n, left_ - 1);
    for (int64_t i = 0; i < ready; ++i) out[i] = temper(words_[next_ + static_cast<uint32_t>(i)]);
    next_ += static_cast<uint32_t>(ready);
    left_ -= static_cast<int>(ready);
    out += ready;
    n -= ready;
  }
}

double Generator::normal() {
  if (next_normal_) {
    const double kept = *next_normal_;
    next_normal_.reset();
    return kept;
  }
  const double u1 = uniform(), u2 = uniform();
  const double radius = std::sqrt(-2.0 * std::log1p(-u2)), theta = 2.0 * std::numbers::pi * u1;
  next_normal_ = radius * std::sin(theta);
  return radius * std::cos(theta);
}

Tensor Generator::state() {
  std::lock_guard lock(mutex_);
  StateBytes s{};
  s.seed = seed_;
  s.left = left_;
  s.seeded = 1;
  s.next = next_;
  std::copy(words_, words_ + kWords, s.words);
  s.normal_is_valid = next_normal_.has_value();
  s.normal_y = next_normal_.value_or(0);
  s.has_next_float_normal = next_float_normal_.has_value();
  s.next_float_normal = next_float_normal_.value_or(0);
  Tensor out = Tensor::empty(Dims{sizeof s}, DType::kUInt8);
  std::memcpy(out.raw(), &s, sizeof s);
  return out;
}

void Generator::set_state(const Tensor& state) {
  PRONG_CHECK(state.dtype() == DType::kUInt8, kType,
              "RNG state must be a torch.ByteTensor, got a tensor of ", state.dtype());
  PRONG_CHECK(state.numel() == sizeof(StateBytes), kRuntime,
              "Expected a CPUGeneratorImplState of size ", sizeof(StateBytes),
              " but found the input RNG state size to be ", state.numel());
  StateBytes s;
  std::memcpy(&s, state.contiguous().raw(), sizeof s);
  PRONG_CHECK(s.seeded == 1 && s.left > 0 && s.left <= kWords && s.next <= kWords, kRuntime,
              "Invalid mt19937 state");
  std::lock_guard lock(mutex_);
  seed_ = s.seed;
  left_ = s.left;
  next_ = static_cast<uint32_t>(s.next);
  for (int i = 0; i < kWords; ++i) words_[i] = static_cast<uint32_t>(s.words[i]);
  next_normal_ = s.normal_is_valid ? std::optional(s.normal_y) : std::nullopt;
  next_float_normal_ = s.has_next_float_normal ? std::optional(s.next_float_normal) : std::nullopt;
}

Ref<Generator> Generator::clone() {
  Ref<Generator> copy = make_ref<Generator>();
  copy->set_state(state());
  return copy;
}

const Ref<Generator>& Generator::default_generator() {
  // Never destroyed: threads may draw while the process ends.
  static const Ref<Generator>* const instance = new Ref<Generator>(make_ref<Generator>());
  return *instance;
}

Ref<Generator> generator_from(const IValue& argument) {
  if (argument.is_none()) return Generator::default_generator();
  auto* generator = argument.is_object() ? dynamic_cast<Generator*>(argument.object()) : nullptr;
  PRONG_CHECK(generator, kType, "expected a Generator, got ", name_of(argument.tag()));
  return Ref<Generator>(generator);
}

}  // namespace prong
