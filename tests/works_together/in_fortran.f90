! SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
!
! What the module `adasum` offers, each of it run among the ranks of MPI_COMM_WORLD; with what it prints, see compare.py.
program in_fortran
  use, intrinsic :: ieee_arithmetic, only: ieee_is_nan, ieee_positive_inf, ieee_value
  use, intrinsic :: iso_fortran_env, only: error_unit, real32, real64
  use mpi_f08
  use adasum
  implicit none
  integer, parameter :: length = 60, lengths(2) = [20, 40]
  integer :: rank, ranks
  logical :: all_right = .true.

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  if (rank == 0) print '(a,/,a)', '[languages]', 'Fortran'
  call one_process()
  call among_ranks()
  call plans()
  call every_rule()
  call options()
  call MPI_Finalize()
  if (.not. all_right) error stop 1

contains

  ! Prints a line of what was found, on rank 0.
  subroutine found(feature, right)
    character(*), intent(in) :: feature
    logical, intent(in) :: right
    logical :: everywhere
    call MPI_Allreduce(right, everywhere, 1, MPI_LOGICAL, MPI_LAND, MPI_COMM_WORLD)
    if (rank == 0) print '(4a)', '  ', feature, ': ', merge('right', 'wrong', everywhere)
    if (.not. right) write (error_unit, '(3a)') feature, ': ', adasum_last_error()
    all_right = all_right .and. everywhere
  end subroutine found

  ! Gradients that are orthogonal, so that Adasum adds them: ones at every ranks-th place.
  function gradient_of(one) result(gradient)
    integer, intent(in) :: one
    real(real32) :: gradient(length)
    gradient = 0
    gradient(one + 1::ranks) = 1
  end function gradient_of

  subroutine one_process()
    real(real32) :: a(4) = [1, 0, 1, 0], b(4) = [0, 1, 0, 1], out(4), columns(4, 3)
    call adasum_pair(a, b, out, [2, 2])
    call found('two gradients of one process', all(out == 1))
    columns(:, 1) = a
    columns(:, 2) = a
    columns(:, 3) = b
    call adasum_combine(columns, out, rule='sum')
    call found('any number of gradients of one process', all(out == [2, 1, 2, 1]))
  end subroutine one_process

  subroutine among_ranks()
    real(real32) :: data(length)
    real(real64) :: doubles(length)
    data = gradient_of(rank)
    call adasum_allreduce(data, MPI_COMM_WORLD, lengths)
    call found('allreduce', all(data == 1))
    call found('segments', all(data == 1))
    call found('float', all(data == 1))
    doubles = gradient_of(rank)
    call adasum_allreduce(doubles, MPI_COMM_WORLD, lengths)
    call found('double', all(doubles == 1))
  end subroutine among_ranks

  subroutine plans()
    real(real32), asynchronous :: data(length)
    real(real32), pointer, contiguous :: buffer(:)
    type(adasum_plan) :: plan
    logical :: done
    data = gradient_of(rank)
    call adasum_plan_create(data, MPI_COMM_WORLD, plan, lengths)
    call adasum_plan_run(plan, data)
    call found('a plan', all(data == 1))
    data = gradient_of(rank)
    call adasum_plan_start(plan, data)
    done = .false.
    do while (.not. done)
      call adasum_plan_test(plan, done)
    end do
    call adasum_plan_wait(plan)
    call found('beside other work', all(data == 1))
    call adasum_plan_buffer(plan, buffer)
    buffer = gradient_of(rank)
    call adasum_plan_run(plan, buffer)
    call found('memory of the plan', all(buffer == 1))
    call adasum_plan_free(plan)
  end subroutine plans

  ! Every name in the library's list, against what one process makes of the same gradients.
  subroutine every_rule()
    character(:), allocatable :: names, rule
    real(real32) :: data(length), columns(length, ranks), expected(length)
    integer :: at, one
    logical :: right
    names = adasum_rules()//', '
    do one = 1, ranks
      columns(:, one) = gradient_of(one - 1)
    end do
    right = .true.
    do while (len(names) > 0)
      at = index(names, ', ')
      rule = names(:at - 1)
      names = names(at + 2:)
      if (rule == 'nearest_neighbour_mixing') rule = rule//':byzantine=1,rule=mean'
      data = gradient_of(rank)
      call adasum_allreduce(data, MPI_COMM_WORLD, lengths, rule=rule)
      call adasum_combine(columns, expected, lengths, rule=rule)
      right = right .and. all(abs(data - expected) <= 1e-5)
    end do
    call found('every rule of the library', right)
  end subroutine every_rule

  subroutine options()
    real(real32) :: data(length)
    type(adasum_report) :: report
    integer :: ierror
    data = 0
    call adasum_allreduce(data(:length - merge(1, 0, rank == 0)), MPI_COMM_WORLD, options='check_agreement=yes', ierror=ierror)
    call found('check_agreement', ierror == adasum_agreement_error .and. index(adasum_last_error(), 'disagree on the length') > 0)
    data = gradient_of(rank)
    call adasum_allreduce(data, MPI_COMM_WORLD, rule='sum', options='measure=when_needed', report=report)
    call found('measure', all(data == 1) .and. ieee_is_nan(adasum_report_norm(report, 0, 1)))
    data = gradient_of(rank)
    if (rank == 1) data(1) = ieee_value(data(1), ieee_positive_inf)
    call adasum_allreduce(data, MPI_COMM_WORLD, rule='sum', options='nonfinite=exclude', report=report)
    call found('nonfinite', all(adasum_report_excluded(report) == [1]))
    data = gradient_of(rank)
    call adasum_allreduce(data, MPI_COMM_WORLD, rule='sum', options='wire=bfloat16, keep_plan=no')
    call found('wire', all(data == 1))
    call found('keep_plan', all(data == 1))
    call adasum_allreduce(data, MPI_COMM_WORLD, options='timeout=0', ierror=ierror)
    call found('timeout', ierror == adasum_bad_input .and. index(adasum_last_error(), 'it must be positive') > 0)
    call adasum_set_timeout(MPI_COMM_WORLD, 100d0, ierror)
    call found('a timeout of the communicator', ierror == adasum_success)
    call adasum_allreduce(data, MPI_COMM_WORLD, rule='mean', report=report)
    call found('a report', adasum_report_rule(report) == 'mean' .and. adasum_report_contributions(report) == ranks)
    call adasum_report_free(report)
  end subroutine options
end program in_fortran
