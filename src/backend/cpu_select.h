// The list of instruction sets of the CPU backend, and how one is chosen.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "backend/thread_pool.h"
#include "detrun/backend.h"
#include "kernels/cpu/ops.h"

namespace detrun {

/// Every instruction set built into this binary that this CPU has, best first, the scalar reference
/// last.
std::span<const kernels::CpuOps* const> available_cpu_ops();

/// The operators of one type, or nullptr.
const kernels::MatmulOps* find_matmul(const kernels::CpuOps& ops, std::uint32_t gguf_id);

// Self-tests run on all threads of `pool`, or on this thread alone.

/// The first of `list` that passes its self-test; the ones before it are warned about. Error
/// kInternal when none passes.
const kernels::CpuOps& first_sound_ops(std::span<const kernels::CpuOps* const> list,
                                       ThreadPool* pool = nullptr);

/// `ops`. Error kInternal, naming the operator, when its self-test fails.
const kernels::CpuOps& require_sound(const kernels::CpuOps& ops, ThreadPool* pool = nullptr);

/// `requested`, or when empty the value of DETRUN_CPU_ISA, or the best that passes its self-test.
/// Errors: see make_cpu_backend.
const kernels::CpuOps& select_cpu_ops(std::string_view requested, ThreadPool* pool = nullptr);

/// A CPU backend on this table, whatever list it is from. The caller has tested it.
std::unique_ptr<Backend> make_cpu_backend_on(const kernels::CpuOps& ops, std::uint32_t n_threads);

}  // namespace detrun
