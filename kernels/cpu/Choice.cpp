#include "kernels/cpu/Choice.h"

#include <cstddef>

#include "kernels/common/Error.h"

namespace faiss_bits::cpu {

namespace {

constexpr const char* kVariantNames[] =
        {"auto", "buffered", "var1", "var5", "var6", "direct"};
constexpr const char* kArithmeticNames[] = {
        "auto",
        "components",
        "int16",
        "bytes",
        "doubles"};

template <size_t kCount>
const char* nameAt(const char* const (&names)[kCount], size_t number) {
    return number < kCount ? names[number] : "unknown";
}

/// The number of a name; `what` it is a name of is for the message.
template <size_t kCount>
int numberOf(
        const char* const (&names)[kCount],
        const char* what,
        const std::string& name) {
    std::string known;
    for (size_t i = 0; i < kCount; ++i) {
        if (name == names[i]) {
            return int(i);
        }
        known += known.empty() ? "" : ", ";
        known += names[i];
    }
    throw Error(formatMessage(
            "%s '%s' is not one of %s", what, name.c_str(), known.c_str()));
}

} // namespace

const char* nameOf(Variant variant) {
    return nameAt(kVariantNames, size_t(variant));
}

const char* nameOf(Arithmetic arithmetic) {
    return nameAt(kArithmeticNames, size_t(arithmetic));
}

Variant variantOf(const std::string& name) {
    return Variant(numberOf(kVariantNames, "variant", name));
}

Arithmetic arithmeticOf(const std::string& name) {
    return Arithmetic(numberOf(kArithmeticNames, "arithmetic", name));
}

} // namespace faiss_bits::cpu
