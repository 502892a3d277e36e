// The same products by the dot product instructions of ARMv8.2: compiled for processors that have
// them, listed as an instruction set of its own.
#include "kernels/cpu/neon/matmul_quant.h"

namespace detrun::kernels::neon {

const MatmulOps kMatmulsIntegerDotprod[kIntegerTypes] = DETRUN_NEON_INTEGER_ROWS(DotBytes);

}  // namespace detrun::kernels::neon
