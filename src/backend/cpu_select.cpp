// THE list of instruction sets. A new one adds a row here, its folder and a flag line in CMake.
#include "backend/cpu_select.h"

#include <cstdlib>
#include <vector>

#include "backend/cpu_self_test.h"
#include "detrun/backend.h"
#include "detrun/error.h"
#include "detrun/log.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace detrun {
namespace {

using kernels::CpuOps;

#if defined(DETRUN_HAVE_AVX2)
/// AVX2 and FMA as the compiler's run time sees them (operating system included), and F16C.
bool cpu_has_avx2() {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  const bool has_f16c = __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
  return has_f16c && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
#endif
#if defined(DETRUN_HAVE_NEON)
bool cpu_has_dotprod() {
  constexpr unsigned long kDotprod = 1UL << 20U;  // HWCAP_ASIMDDP of the kernel's asm/hwcap.h
  return (getauxval(AT_HWCAP) & kDotprod) != 0;
}
#endif
bool always() { return true; }

struct IsaRow {
  const CpuOps* ops;
  bool (*cpu_has)();
};
/// Best first, the scalar reference last.
constexpr IsaRow kIsas[] = {
#if defined(DETRUN_HAVE_AVX2)
    {&kernels::avx2::kOps, cpu_has_avx2},
#endif
#if defined(DETRUN_HAVE_NEON)
    {&kernels::neon::kOpsDotprod, cpu_has_dotprod},
    {&kernels::neon::kOps, always},
#endif
    {&kernels::scalar::kOps, always},
};

std::string names_of(std::span<const CpuOps* const> list) {
  std::string names;
  for (const CpuOps* ops : list) names += (names.empty() ? "" : ", ") + std::string(ops->name);
  return names;
}

const CpuOps& select_by_name(std::string_view name, std::string_view source, ThreadPool* pool) {
  for (const IsaRow& row : kIsas) {
    if (name != row.ops->name) continue;
    if (!row.cpu_has()) {
      throw_usage("this CPU does not have the instruction set " + std::string(name) + " (" +
                      std::string(source) + ")",
                  "available here: " + names_of(available_cpu_ops()));
    }
    return require_sound(*row.ops, pool);
  }
  throw_usage("unknown instruction set '" + std::string(name) + "' (" + std::string(source) + ")",
              "available here: " + names_of(available_cpu_ops()));
}

}  // namespace

std::span<const CpuOps* const> available_cpu_ops() {
  static const std::vector<const CpuOps*> list = [] {
    std::vector<const CpuOps*> found;
    for (const IsaRow& row : kIsas) {
      if (row.cpu_has()) found.push_back(row.ops);
    }
    return found;
  }();
  return list;
}

std::vector<std::string> available_cpu_isas() {
  std::vector<std::string> names;
  for (const CpuOps* ops : available_cpu_ops()) names.emplace_back(ops->name);
  return names;
}

const kernels::MatmulOps* find_matmul(const CpuOps& ops, std::uint32_t gguf_id) {
  for (const kernels::MatmulOps* matmul : std::span(ops.matmuls, ops.n_matmuls)) {
    if (matmul->gguf_id == gguf_id) return matmul;
  }
  return nullptr;
}

const CpuOps& require_sound(const CpuOps& ops, ThreadPool* pool) {
  const std::string failed = failed_self_test(ops, pool);
  if (!failed.empty()) {
    throw_internal("the instruction set " + std::string(ops.name) +
                   " fails its known-answer test of " + failed + " on this CPU");
  }
  return ops;
}

const CpuOps& first_sound_ops(std::span<const CpuOps* const> list, ThreadPool* pool) {
  for (const CpuOps* ops : list) {
    const std::string failed = failed_self_test(*ops, pool);
    if (failed.empty()) return *ops;
    log_warning("the instruction set " + std::string(ops->name) +
                " fails its known-answer test of " + failed + " on this CPU and is not used");
  }
  throw_internal(
      "no instruction set passes its known-answer test: the compiler, the C library or "
      "this CPU breaks the arithmetic contract");
}

const CpuOps& select_cpu_ops(std::string_view requested, ThreadPool* pool) {
  if (!requested.empty()) return select_by_name(requested, "asked for", pool);
  const char* forced = std::getenv("DETRUN_CPU_ISA");
  if (forced != nullptr && *forced != '\0') return select_by_name(forced, "DETRUN_CPU_ISA", pool);
  return first_sound_ops(available_cpu_ops(), pool);
}

}  // namespace detrun
