! SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
!
! use adasum: the library for Fortran programs, with mpi_f08 or mpi. docs/c_and_fortran.md is a short introduction; what the calls
! do is said in include/adasum/adasum.h, whose functions these are.
!
! Arrays are real(real32) or real(real64), of any rank; `lengths` are those of their segments, integers of any kind, one for each
! layer; without them, the array is one segment. A communicator is a type(MPI_Comm), or an integer as in the module mpi. Rules and
! options are texts: rule="centred_clipping:radius=2", options="nonfinite=exclude".
!
! `ierror` is adasum_success, or says what went wrong; adasum_last_error() has the message. A call without `ierror` that fails
! ends the program with that message, as MPI does.
!
! Ranks count from 0, as in MPI; segments count from 1, as `lengths` does.
module adasum
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: real32, real64
  use mpi_f08, only: MPI_Comm
  use adasum_c
  use adasum_reports
  use adasum_real32
  use adasum_real64
  implicit none
  private

  public :: adasum_plan, adasum_report, adasum_success, adasum_bad_input, adasum_agreement_error, adasum_nonfinite_error
  public :: adasum_shared_memory_error, adasum_communication_error, adasum_timeout_error, adasum_mpi_error
  public :: adasum_out_of_memory, adasum_other_error
  public :: adasum_version, adasum_rules, adasum_error_name, adasum_last_error, adasum_pair, adasum_combine
  public :: adasum_allreduce, adasum_set_timeout
  public :: adasum_plan_create, adasum_plan_run, adasum_plan_start, adasum_plan_test, adasum_plan_wait, adasum_plan_buffer
  public :: adasum_plan_free
  public :: adasum_report_contributions, adasum_report_segments, adasum_report_rule, adasum_report_schedule
  public :: adasum_report_orthogonality, adasum_report_norm, adasum_report_weight, adasum_report_result_norm
  public :: adasum_report_finite, adasum_report_excluded, adasum_report_json, adasum_report_free

  ! Sets how long this rank waits for others at most: adasum_set_timeout(comm, seconds, ierror).
  interface adasum_set_timeout
    module procedure set_timeout, set_timeout_by_handle, set_timeout_real32, set_timeout_real32_by_handle
  end interface adasum_set_timeout

contains

  subroutine set_timeout(comm, seconds, ierror)
    type(MPI_Comm), intent(in) :: comm
    real(real64), intent(in) :: seconds
    integer, intent(out), optional :: ierror
    call set_timeout_by_handle(comm%MPI_VAL, seconds, ierror)
  end subroutine set_timeout

  subroutine set_timeout_by_handle(comm, seconds, ierror)
    integer, intent(in) :: comm
    real(real64), intent(in) :: seconds
    integer, intent(out), optional :: ierror
    call finish(c_set_timeout(int(comm, c_int), seconds), ierror)
  end subroutine set_timeout_by_handle

  subroutine set_timeout_real32(comm, seconds, ierror)
    type(MPI_Comm), intent(in) :: comm
    real(real32), intent(in) :: seconds
    integer, intent(out), optional :: ierror
    call set_timeout_by_handle(comm%MPI_VAL, real(seconds, real64), ierror)
  end subroutine set_timeout_real32

  subroutine set_timeout_real32_by_handle(comm, seconds, ierror)
    integer, intent(in) :: comm
    real(real32), intent(in) :: seconds
    integer, intent(out), optional :: ierror
    call set_timeout_by_handle(comm, real(seconds, real64), ierror)
  end subroutine set_timeout_real32_by_handle

  subroutine adasum_plan_test(plan, done, ierror)
    type(adasum_plan), intent(in) :: plan
    logical, intent(out) :: done
    integer, intent(out), optional :: ierror
    integer(c_int) :: flag
    integer :: error
    flag = 0
    error = c_plan_test(plan%id, flag)
    done = flag /= 0
    call finish(error, ierror)
  end subroutine adasum_plan_test

  subroutine adasum_plan_wait(plan, report, ierror)
    type(adasum_plan), intent(in) :: plan
    type(adasum_report), intent(inout), optional, target :: report
    integer, intent(out), optional :: ierror
    call finish(c_plan_wait(plan%id, address(report)), ierror)
  end subroutine adasum_plan_wait

  subroutine adasum_plan_free(plan, ierror)
    type(adasum_plan), intent(inout) :: plan
    integer, intent(out), optional :: ierror
    call finish(c_plan_free(plan%id), ierror)
  end subroutine adasum_plan_free

end module adasum
