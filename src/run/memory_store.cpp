// See memory_store.h.
#include "run/memory_store.h"

#include <utility>

#include "detrun/text.h"

namespace detrun {

MemoryStore::MemoryStore(FieldMap start_fields) {
  run_.fields = std::move(start_fields);
  run_.fields.emplace(field::id, uuid_v7(unix_time_ms()));
}

void MemoryStore::add_fields(const FieldMap& fields) {
  run_.fields.insert(fields.begin(), fields.end());
}

void MemoryStore::add_step(const StepRecord& step) { run_.steps.push_back(step); }

std::optional<Sha256Digest> MemoryStore::finish(const FieldMap& end_fields) {
  add_fields(end_fields);
  Blob text;
  for (const StepRecord& step : run_.steps) text.bytes += step.piece;
  run_.fields.emplace(field::text, std::move(text));
  run_.fields.emplace(field::step_count, static_cast<std::int64_t>(run_.steps.size()));
  return std::nullopt;
}

}  // namespace detrun
