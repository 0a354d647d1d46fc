// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The ranks of the model once more, with a shared_barriers whose calls are recorded.
#include "recorded_access.hpp"
#include "window.hpp"

namespace adasum::test::model {

template <bool one_address_space>
inline constexpr bool is_recorded<window<one_address_space>> = true;

}  // namespace adasum::test::model

#include "ranks.cpp"
