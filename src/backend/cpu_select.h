// The list of instruction sets of the CPU backend, and how one is chosen.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "kernels/cpu/ops.h"

namespace detrun {

/// Every instruction set built into this binary that this CPU has, best first, the scalar reference
/// last.
std::span<const kernels::CpuOps* const> available_cpu_ops();

/// The operators of one type, or nullptr.
const kernels::MatmulOps* find_matmul(const kernels::CpuOps& ops, std::uint32_t gguf_id);

/// `requested`, or when empty the value of DETRUN_CPU_ISA, or the best that passes its self-test.
/// Errors: see make_cpu_backend.
const kernels::CpuOps& select_cpu_ops(std::string_view requested);

}  // namespace detrun
