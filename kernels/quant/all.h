// Every supported tensor type, for tables that need them all. Nothing else.
// A type that is added gets its header here and its row in include/detrun/qtypes.def.
#pragma once

#include "kernels/quant/bf16.h"
#include "kernels/quant/f16.h"
#include "kernels/quant/f32.h"
#include "kernels/quant/iq4_nl.h"
#include "kernels/quant/iq4_xs.h"
#include "kernels/quant/q2_k.h"
#include "kernels/quant/q3_k.h"
#include "kernels/quant/q4_0.h"
#include "kernels/quant/q4_1.h"
#include "kernels/quant/q4_k.h"
#include "kernels/quant/q5_0.h"
#include "kernels/quant/q5_1.h"
#include "kernels/quant/q5_k.h"
#include "kernels/quant/q6_k.h"
#include "kernels/quant/q8_0.h"
