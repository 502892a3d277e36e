// A matrix as the kernels of one instruction set like it: checked and packed once, at load.
#pragma once

#include <memory>
#include <string>

#include "backend/cpu_memory.h"
#include "backend/thread_pool.h"
#include "detrun/backend.h"
#include "kernels/cpu/ops.h"

namespace detrun {

struct CpuWeight final : Weight {
  std::string name;
  const kernels::MatmulOps* ops = nullptr;
  std::uint64_t k = 0;  ///< length of the dot products
  std::uint64_t n = 0;  ///< outputs
  CpuMemory packed;
  std::uint64_t n_groups() const { return (n + ops->group - 1) / ops->group; }
};

/// Errors: see Backend::load_weight.
std::unique_ptr<CpuWeight> load_cpu_weight(const kernels::CpuOps& ops, ThreadPool& pool,
                                           const WeightView& view);

}  // namespace detrun
