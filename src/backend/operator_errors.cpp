// See operator_errors.h.
#include "backend/operator_errors.h"

#include <string>

#include "detrun/error.h"
#include "detrun/quant.h"

namespace detrun {

void throw_activation_not_finite(std::string_view weight, std::uint64_t row, std::uint64_t rows) {
  throw_internal("matmul " + std::string(weight) + ": activation row " + std::to_string(row) +
                 " of " + std::to_string(rows) + " holds a value that is not finite");
}

void throw_activation_does_not_fit(std::string_view weight, QType type, std::uint64_t row,
                                   std::uint64_t rows) {
  if (type == QType::kF32) throw_activation_not_finite(weight, row, rows);
  throw_internal("matmul " + std::string(weight) + ": activation row " + std::to_string(row) +
                     " of " + std::to_string(rows) + " holds a value that is not finite or too " +
                     "large for " + std::string(qtype_info(type).name),
                 "run with --numerics portable");
}

void throw_norm_not_finite(std::uint64_t row, std::uint64_t rows) {
  throw_internal("rmsnorm: the sum of squares of row " + std::to_string(row) + " of " +
                 std::to_string(rows) + " is not finite");
}

void throw_kv_does_not_fit(KvType type, std::uint32_t layer, std::uint64_t position) {
  const std::string where = "kv_write: K or V of layer " + std::to_string(layer) + ", position " +
                            std::to_string(position);
  if (type == KvType::kF32) throw_internal(where + " is not finite");
  throw_internal(where + " does not fit into f16 (largest 65504)", "run with --kv f32");
}

void check_weight_view(const WeightView& view, bool has_type) {
  const QTypeInfo& type = qtype_info(view.type);
  const std::string what = "tensor " + std::string(view.name);
  if (!has_type) throw_usage(what + " has the unsupported type " + std::string(type.name));
  const auto bytes = row_bytes(type, view.row_elems);
  if (!bytes || *bytes == 0 || view.n_rows == 0) {
    throw_usage(what + ": " + std::to_string(view.n_rows) + " rows of " +
                std::to_string(view.row_elems) + " elements cannot be " + std::string(type.name) +
                ", whose blocks hold " + std::to_string(type.block_elems));
  }
  if (view.data.size() % *bytes != 0 || view.data.size() / *bytes != view.n_rows) {
    throw_usage(what + " has " + std::to_string(view.data.size()) + " bytes, expected " +
                std::to_string(view.n_rows) + " rows of " + std::to_string(*bytes));
  }
}

void throw_weight_not_finite(const WeightView& view, std::uint64_t element) {
  throw_usage("tensor " + std::string(view.name) +
                  " holds a value or scale that is not finite, in row " +
                  std::to_string(element / view.row_elems) + " at element " +
                  std::to_string(element % view.row_elems),
              "the model file is damaged or was converted wrongly; get it again");
}

}  // namespace detrun
