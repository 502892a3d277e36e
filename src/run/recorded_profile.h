// The arithmetic profile of a recorded run: what its fields say, and whether it holds here.
#pragma once

#include <optional>
#include <string>

#include "detrun/backend.h"
#include "detrun/model_file.h"
#include "detrun/trace.h"
#include "run/product_test.h"

namespace detrun {

struct RecordedProfile {
  std::string name;
  std::optional<ProductPlan> plan;  ///< exactly under cublas
  std::string binding;  ///< of the stack that recorded it, as it stands there; cublas only
};

/// nullopt, and why, for what this build does not know. Values of a forged ledger may be anything.
std::optional<RecordedProfile> read_profile(const FieldMap& fields, std::string& why);

/// What is wrong with a plan whose products are not all matrices of the model; empty: they are.
std::string foreign_product(const ProductPlan& plan, const ModelFile& model);

/// What came of making a backend compute as the run was computed.
struct ProfileStart {
  bool ready = false;
  std::string why;  ///< not ready: why; ready: what `force` stepped over, or nothing
};

/// Under cublas the binding fields of both stacks must be equal, or `force` says that the
/// algorithms of another stack may be tried: the recorded ones with the same cuBLASLt, else new
/// ones. After the weights were loaded and before a context is made. Errors: kUsage and kInternal
/// as start_profile.
ProfileStart start_profile_of(const RecordedProfile& recorded, Backend& backend, bool force,
                              TestedProducts& tested);

}  // namespace detrun
