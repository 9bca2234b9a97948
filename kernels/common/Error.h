#pragma once

#include <cstdarg>
#include <cstdio>
#include <stdexcept>
#include <string>

namespace faiss_bits {

/// A bad argument or a failed CUDA call. Nothing was enqueued for a bad
/// argument. Index classes turn it into a faiss::FaissException.
class Error : public std::runtime_error {
   public:
    using std::runtime_error::runtime_error;
};

/// A text as printf writes it; cut off after 511 characters.
#if defined(__GNUC__)
__attribute__((format(printf, 1, 2)))
#endif
inline std::string
formatMessage(const char* format, ...) {
    char text[512];
    va_list args;
    va_start(args, format);
    std::vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return text;
}

} // namespace faiss_bits

/// Throws faiss_bits::Error with a printf-style message that names the
/// argument and its value.
#define BITS_THROW_IF_NOT_FMT(condition, ...)                  \
    do {                                                       \
        if (!(condition)) {                                    \
            throw ::faiss_bits::Error(                         \
                    ::faiss_bits::formatMessage(__VA_ARGS__)); \
        }                                                      \
    } while (false)
