! SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
program stop_at_error
  use adasum
  implicit none
  real :: gradients(2, 2) = 1, out(2)
  call adasum_combine(gradients, out, rule='median')
  print *, 'still here'
end program stop_at_error
