// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// For the test of check_names.cmake: asks a space for one member that the page names, and for one that it does not.
template <class Space>
void ask(const Space& space) {
  if constexpr (requires { space.can_reach(nullptr); }) space.can_reach(nullptr);
  if constexpr (requires {
                  { space.favourite_colour() } -> std::same_as<bool>;
                })
    space.favourite_colour();
}
