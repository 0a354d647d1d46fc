// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ranks.hpp"
#include "window.hpp"

namespace adasum::test::model {

const char* name_of_word(std::size_t byte, bool is_atomic) {
  if (byte >= gradients_at && byte < votes_at) return "gradient";
  constexpr const char* fields[] = {"step", "failed_run", "good_run",   "signature",
                                    "left", "word",       "slot_bytes", "gradient_at"};
  const auto at = byte < gradients_at ? byte % block_bytes : (byte - votes_at) % votes_bytes;
  if (at < 64) return fields[at / 8];
  return is_atomic ? "flag" : "published numbers";
}
std::size_t rank_of_word(std::size_t byte) {
  if (byte >= votes_at) return (byte - votes_at) / votes_bytes;
  return byte >= gradients_at ? (byte - gradients_at) / gradient_bytes : byte / block_bytes;
}

}  // namespace adasum::test::model
