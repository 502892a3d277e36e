// Integrity of a ledger from its own rows: recomputes every hash, names the first thing of every
// run that is not what was sealed. Never throws for damage: damage is its answer.
#pragma once

#include "detrun/ledger.h"
#include "ledger/connection.h"

namespace detrun::ledger {

VerifyReport verify_all(const Connection& connection);
VerifyReport verify_one(const Connection& connection, std::int64_t number);

}  // namespace detrun::ledger
