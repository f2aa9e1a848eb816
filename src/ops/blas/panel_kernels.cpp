// The choice of kernels for this machine. Called through panel_kernels.h,
// gate_kernels.h, move_kernels.h, tap_kernels.h and thin_kernels.h.
#include "ops/blas/panel_kernels.h"
#include "ops/blas/gate_kernels.h"
#include "ops/blas/move_kernels.h"
#include "ops/blas/tap_kernels.h"
#include "ops/blas/thin_kernels.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace prong::blas {

namespace {

#if defined(__x86_64__)
// The matrix unit is there, and the kernel lets this process save its large registers.
bool may_use_amx() {
#ifdef __linux__
  unsigned a, b, c, d;
  constexpr unsigned kBf16 = 1u << 22, kTile = 1u << 24;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d & kBf16) || !(d & kTile)) return false;
  constexpr int kRequestPermission = 0x1023,
                kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

bool has_v4() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512cd");
}
#endif

}  // namespace

#if defined(__x86_64__)
const PanelKernels& exact_kernels() {
  static const PanelKernels& chosen = has_v4() ? v4::fma_kernels() : v3::fma_kernels();
  return chosen;
}

const PanelKernels* split_kernels() {
  static const PanelKernels* chosen = has_v4() && may_use_amx() ? &v4::amx_kernels() : nullptr;
  return chosen;
}

const TapKernels* tap_kernels() { return split_kernels() ? &v4::tap_kernels() : nullptr; }

const GateKernels& gate_kernels() {
  static const GateKernels& chosen = has_v4() ? v4::gate_kernels() : v3::gate_kernels();
  return chosen;
}

const MoveKernels& move_kernels() {
  static const MoveKernels& chosen = has_v4() ? v4::move_kernels() : v3::move_kernels();
  return chosen;
}

const ThinKernels& thin_kernels() {
  static const ThinKernels& chosen = has_v4() ? v4::thin_kernels() : v3::thin_kernels();
  return chosen;
}
#else
const ThinKernels& thin_kernels() { return generic::thin_kernels(); }
const MoveKernels& move_kernels() { return generic::move_kernels(); }
const GateKernels& gate_kernels() { return generic::gate_kernels(); }
const PanelKernels& exact_kernels() { return generic::fma_kernels(); }
const PanelKernels* split_kernels() { return nullptr; }
const TapKernels* tap_kernels() { return nullptr; }
#endif

}  // namespace prong::blas
