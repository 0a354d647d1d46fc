! SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
!
! What the calls of the module `adasum` have in common: errors, optional arguments, and reports. For programs: use adasum.
module adasum_reports
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: error_unit, int8, int16, int32, int64, real64
  use adasum_c
  implicit none
  public
  private :: place, report_json, report_json_int32

  integer, parameter :: adasum_success = 0, adasum_bad_input = 1, adasum_agreement_error = 2, &
    adasum_nonfinite_error = 3, adasum_shared_memory_error = 4, adasum_communication_error = 5, adasum_timeout_error = 6, &
    adasum_mpi_error = 7, adasum_out_of_memory = 8, adasum_other_error = 9

  ! The report as one line of JSON: adasum_report_json(report, step).
  interface adasum_report_json
    module procedure report_json, report_json_int32
  end interface adasum_report_json

  type :: adasum_report
    type(handle) :: id
  end type adasum_report

  type :: adasum_plan
    type(handle) :: id
    integer(c_size_t) :: count = 0
  end type adasum_plan

  ! Made by understand(): what C is given for the optional arguments.
  type :: arguments
    character(kind=c_char), allocatable :: rule(:), options(:)
    integer(c_int64_t), allocatable :: lengths(:)
    type(c_ptr) :: c_rule = c_null_ptr, c_options = c_null_ptr, c_lengths = c_null_ptr
    integer(c_size_t) :: segments = 0
  end type arguments

contains

  integer function adasum_version()
    adasum_version = c_version()
  end function adasum_version

  function adasum_rules() result(text)
    character(:), allocatable :: text
    text = text_of(c_rules())
  end function adasum_rules

  function adasum_error_name(error) result(text)
    integer, intent(in) :: error
    character(:), allocatable :: text
    text = text_of(c_error_name(int(error, c_int)))
  end function adasum_error_name

  function adasum_last_error() result(text)
    character(:), allocatable :: text
    text = text_of(c_last_error())
  end function adasum_last_error

  integer function adasum_report_contributions(report)
    type(adasum_report), intent(in) :: report
    adasum_report_contributions = int(c_report_contributions(report%id))
  end function adasum_report_contributions

  integer function adasum_report_segments(report)
    type(adasum_report), intent(in) :: report
    adasum_report_segments = int(c_report_segments(report%id))
  end function adasum_report_segments

  function adasum_report_rule(report) result(text)
    type(adasum_report), intent(in) :: report
    character(:), allocatable :: text
    text = text_of(c_report_rule(report%id))
  end function adasum_report_rule

  function adasum_report_schedule(report) result(text)
    type(adasum_report), intent(in) :: report
    character(:), allocatable :: text
    text = text_of(c_report_schedule(report%id))
  end function adasum_report_schedule

  ! Of one segment, or of all together.
  real(real64) function adasum_report_orthogonality(report, segment)
    type(adasum_report), intent(in) :: report
    integer, intent(in), optional :: segment
    integer(c_size_t) :: which
    which = -1
    if (present(segment)) which = place(segment)
    adasum_report_orthogonality = c_report_orthogonality(report%id, which)
  end function adasum_report_orthogonality

  real(real64) function adasum_report_norm(report, rank, segment)
    type(adasum_report), intent(in) :: report
    integer, intent(in) :: rank, segment
    adasum_report_norm = c_report_norm(report%id, int(rank, c_size_t), place(segment))
  end function adasum_report_norm

  real(real64) function adasum_report_weight(report, rank, segment)
    type(adasum_report), intent(in) :: report
    integer, intent(in) :: rank, segment
    adasum_report_weight = c_report_weight(report%id, int(rank, c_size_t), place(segment))
  end function adasum_report_weight

  real(real64) function adasum_report_result_norm(report, segment)
    type(adasum_report), intent(in) :: report
    integer, intent(in) :: segment
    adasum_report_result_norm = c_report_result_norm(report%id, place(segment))
  end function adasum_report_result_norm

  logical function adasum_report_finite(report)
    type(adasum_report), intent(in) :: report
    adasum_report_finite = c_report_finite(report%id) /= 0
  end function adasum_report_finite

  ! The ranks that were left out.
  function adasum_report_excluded(report) result(ranks)
    type(adasum_report), intent(in) :: report
    integer, allocatable :: ranks(:)
    integer(c_int), allocatable :: found(:)
    integer(c_size_t) :: number
    allocate (found(adasum_report_contributions(report)))
    number = c_report_excluded(report%id, found, size(found, kind=c_size_t))
    ranks = int(found(:number))
  end function adasum_report_excluded

  function report_json(report, step) result(text)
    type(adasum_report), intent(in) :: report
    integer(int64), intent(in) :: step
    character(:), allocatable :: text
    character(kind=c_char), allocatable, target :: line(:)
    integer(c_size_t) :: length
    length = c_report_json(report%id, step, c_null_ptr, 0_c_size_t)
    allocate (line(length + 1))
    line = c_null_char
    length = c_report_json(report%id, step, c_loc(line), length + 1)
    text = text_of(c_loc(line))
  end function report_json

  function report_json_int32(report, step) result(text)
    type(adasum_report), intent(in) :: report
    integer(int32), intent(in) :: step
    character(:), allocatable :: text
    text = report_json(report, int(step, int64))
  end function report_json_int32

  subroutine adasum_report_free(report, ierror)
    type(adasum_report), intent(inout) :: report
    integer, intent(out), optional :: ierror
    call finish(c_report_free(report%id), ierror)
  end subroutine adasum_report_free

  ! A segment, counted from 0. One that does not exist stays one: -1 would be all of them.
  integer(c_size_t) function place(segment)
    integer, intent(in) :: segment
    place = segment - 1
    if (segment < 1) place = huge(place)
  end function place

  ! Lengths are integers of any kind. If they are not, C is given their number and a null pointer, and says so.
  subroutine understand(given, lengths, rule, options)
    type(arguments), target, intent(inout) :: given
    class(*), intent(in), optional :: lengths(:)
    character(*), intent(in), optional :: rule, options
    call for_c(rule, given%rule, given%c_rule)
    call for_c(options, given%options, given%c_options)
    if (.not. present(lengths)) return
    given%segments = size(lengths, kind=c_size_t)
    select type (lengths)
    type is (integer(int8))
      given%lengths = int(lengths, c_int64_t)
    type is (integer(int16))
      given%lengths = int(lengths, c_int64_t)
    type is (integer(int32))
      given%lengths = int(lengths, c_int64_t)
    type is (integer(int64))
      given%lengths = lengths
    class default
      return
    end select
    given%c_lengths = c_loc(given%lengths)
  end subroutine understand

  type(c_ptr) function address(report)
    type(adasum_report), intent(inout), optional, target :: report
    address = c_null_ptr
    if (present(report)) address = c_loc(report%id)
  end function address

  subroutine finish(error, ierror)
    integer(c_int), intent(in) :: error
    integer, intent(out), optional :: ierror
    if (present(ierror)) then
      ierror = error
    else if (error /= adasum_success) then
      write (error_unit, '(4a)') adasum_error_name(error), ': ', adasum_last_error()
      error stop 1
    end if
  end subroutine finish

end module adasum_reports
