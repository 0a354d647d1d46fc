! SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
!
! The least squares of after.f90, with all that a longer training uses: a plan, a segment for each layer, the rule of the command
! line, other work while gradients are combined, a report, and errors.
!     mpirun -n 2 ./fortran.plan centred_clipping:radius=2
program least_squares_with_a_plan
  use, intrinsic :: iso_fortran_env, only: error_unit, int64, real64
  use mpi_f08; use adasum
  implicit none
  integer, parameter :: features = 24, parameters = features + 1, rows = 60, epochs = 300
  real(real64), parameter :: rate = 0.4_real64
  real(real64) :: x(features, rows), y(rows), w(parameters), error(rows), first, last
  real(real64), asynchronous :: gradient(parameters)  ! the last parameter is the bias
  type(adasum_plan) :: plan
  type(adasum_report) :: report
  character(100) :: rule
  integer :: rank, epoch, i, ierror
  integer, allocatable :: seed(:)
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  rule = 'adasum'
  if (command_argument_count() > 0) call get_command_argument(1, rule)

  call random_seed(size=i)
  allocate (seed(i))
  seed = 1 + rank
  call random_seed(put=seed)
  call random_number(x)
  x = 2*x - 1
  y = 3 + matmul([(real(mod(i, 5) - 2, real64), i=0, features - 1)], x)

  call adasum_set_timeout(MPI_COMM_WORLD, 60._real64)
  call adasum_plan_create(gradient, MPI_COMM_WORLD, plan, [features, 1], trim(rule), 'check_agreement=yes', ierror)
  if (ierror /= adasum_success) then  ! without ierror, a call that fails prints this itself, and ends the program
    write (error_unit, '(3a)') adasum_error_name(ierror), ': ', adasum_last_error()
    call MPI_Abort(MPI_COMM_WORLD, ierror)
  end if
  w = 0
  do epoch = 1, epochs
    error = matmul(w(:features), x) + w(parameters) - y
    gradient = [matmul(x, error), sum(error)]/rows
    call adasum_plan_start(plan, gradient)
    last = sum(error**2)/rows  ! here: other work. It must not touch the gradient
    if (epoch == 1) first = last
    call adasum_plan_wait(plan, report)
    w = w - rate*gradient
  end do

  if (rank == 0) then
    print '(a)', adasum_report_json(report, int(epochs, int64))
    print '(a,f5.2)', "orthogonality of the weights' gradients:", adasum_report_orthogonality(report, 1)
    print '(a,es10.3,a,es10.3,a)', 'mean squared error of rank 0:', first, ' in the first epoch,', last, ' in the last'
  end if
  call adasum_plan_free(plan)
  call adasum_report_free(report)
  call MPI_Finalize()
  if (last > 0.01*first) error stop 1
end program least_squares_with_a_plan
