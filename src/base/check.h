// DI_CHECK: a condition whose failure is a bug of ours, never the user's. On in every build; prints and aborts.
// DI_DCHECK: the same for hot loops, on in debug builds only.
// DI_RETURN_IF_ERROR and DI_ASSIGN_OR_RETURN pass an Error up to the caller.
#pragma once

namespace deepinfer {

/// Prints "file:line: check failed: condition" on standard error and aborts.
[[noreturn]] void check_failed(const char* condition, const char* file, int line);

}  // namespace deepinfer

#define DI_CHECK(condition)                                      \
  do {                                                           \
    if (!(condition)) [[unlikely]]                               \
      ::deepinfer::check_failed(#condition, __FILE__, __LINE__); \
  } while (false)

#ifdef NDEBUG
#define DI_DCHECK(condition) \
  do {                       \
  } while (false)
#else
#define DI_DCHECK(condition) DI_CHECK(condition)
#endif

#define DI_RETURN_IF_ERROR(expression)                                 \
  do {                                                                 \
    if (auto di_status_ = (expression); !di_status_.ok()) [[unlikely]] \
      return std::move(di_status_).error();                            \
  } while (false)

#define DI_CONCAT_INNER_(a, b) a##b
#define DI_CONCAT_(a, b) DI_CONCAT_INNER_(a, b)
#define DI_ASSIGN_OR_RETURN(declaration, expression) \
  DI_ASSIGN_OR_RETURN_IMPL_(DI_CONCAT_(di_result_, __LINE__), declaration, expression)
#define DI_ASSIGN_OR_RETURN_IMPL_(result, declaration, expression) \
  auto result = (expression);                                      \
  if (!result.ok()) [[unlikely]]                                   \
    return std::move(result).error();                              \
  declaration = *std::move(result)
