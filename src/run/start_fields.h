// What is known about a run before its first step, as fields of the ledger.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "detrun/backend.h"
#include "detrun/run.h"
#include "detrun/trace.h"
#include "run/loaded_model.h"
#include "run/prompt.h"

namespace detrun {

/// Text when the bytes are UTF-8 without NUL, otherwise a blob: names in files are anybody's bytes.
FieldValue text_or_blob(std::string_view bytes);

/// The path from the root, without "." and ".." where the name without them is the same file (after
/// a symbolic link ".." leads elsewhere). As given when the working folder has no name any more.
std::string absolute_path(const std::string& path);

/// {"general.author": "...", ...}: author, organization, licence, source, base-model and address
/// fields of the file, canonical JSON; "{}" when it has none.
std::string provenance_of(const ModelFile& file);

/// What the model file says about itself: size, name, architecture, quantization, digests of
/// tokenizer and chat template, provenance. Neither path nor digest of the file.
FieldMap model_fields(const LoadedModel& model);

/// Every start field of the list that applies. `plan`: the pinned products of profile cublas.
FieldMap start_fields(const RecordOptions& options, const LoadedModel& model,
                      const BackendInfo& backend, const std::optional<ProductPlan>& plan,
                      const Prompt& prompt, std::uint32_t n_ctx);

}  // namespace detrun
