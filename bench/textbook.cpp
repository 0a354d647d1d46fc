// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "textbook.hpp"

namespace textbook {

template <class Build, class T>
void pair(T* a, const T* b, std::size_t length) {
  double aa = 0, ab = 0, bb = 0;
  for (std::size_t i = 0; i < length; ++i) {
    const double x = a[i], y = b[i];
    aa += x * x;
    ab += x * y;
    bb += y * y;
  }
  const double weight_a = aa > 0 ? 1 - ab / (2 * aa) : 1, weight_b = bb > 0 ? 1 - ab / (2 * bb) : 1;
  for (std::size_t i = 0; i < length; ++i) a[i] = static_cast<T>(weight_a * a[i] + weight_b * b[i]);
}

template void pair<TEXTBOOK_BUILD>(float*, const float*, std::size_t);
template void pair<TEXTBOOK_BUILD>(double*, const double*, std::size_t);
#ifdef __FLT16_MANT_DIG__
template void pair<TEXTBOOK_BUILD>(_Float16*, const _Float16*, std::size_t);
#endif

}  // namespace textbook
