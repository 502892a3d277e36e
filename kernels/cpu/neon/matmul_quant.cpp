// Products with the integer weight types on every AArch64 processor; the words are
// matmul_quant.h's.
#include "kernels/cpu/neon/matmul_quant.h"

namespace detrun::kernels::neon {

const MatmulOps kMatmulsInteger[kIntegerTypes] = DETRUN_NEON_INTEGER_ROWS(WideningBytes);

}  // namespace detrun::kernels::neon
