! SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
!
! Least squares by stochastic gradient descent, data-parallel: each rank has rows of its own, and gradients are combined.
program least_squares
  use mpi_f08
  implicit none
  integer, parameter :: features = 24, rows = 60, batch = 6, epochs = 40
  real, parameter :: rate = 0.2
  real :: x(features, rows), y(rows), w(features), gradient(features), truth(features), error, loss, first, last
  integer :: rank, ranks, epoch, row, i
  integer, allocatable :: seed(:)
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)

  truth = [(real(mod(i, 5) - 2), i=1, features)]
  call random_seed(size=i)
  allocate (seed(i))
  seed = 1 + rank
  call random_seed(put=seed)
  call random_number(x)
  x = 2*x - 1
  y = matmul(truth, x)

  w = 0
  do epoch = 1, epochs
    loss = 0
    do row = 1, rows
      if (mod(row, batch) == 1) gradient = 0
      error = dot_product(w, x(:, row)) - y(row)
      gradient = gradient + error*x(:, row)/batch
      loss = loss + error**2/(rows*ranks)
      if (mod(row, batch) /= 0) cycle

      call MPI_Allreduce(MPI_IN_PLACE, gradient, features, MPI_REAL, MPI_SUM, MPI_COMM_WORLD)
      w = w - rate/ranks*gradient
    end do
    call MPI_Allreduce(MPI_IN_PLACE, loss, 1, MPI_REAL, MPI_SUM, MPI_COMM_WORLD)
    if (epoch == 1) first = loss
    last = loss
  end do

  if (rank == 0) print '(a,es10.3,a,es10.3,a)', 'mean squared error:', first, ' in the first epoch,', last, ' in the last'
  call MPI_Finalize()
  if (last > 0.01*first) error stop 1
end program least_squares
