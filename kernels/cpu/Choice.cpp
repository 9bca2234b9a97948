#include "kernels/cpu/Choice.h"

#include <iterator>

#include "kernels/common/Error.h"

namespace faiss_bits::cpu {

namespace {

constexpr const char* kVariantNames[] =
        {"auto", "buffered", "var1", "var5", "var6", "direct"};

} // namespace

const char* nameOf(Variant variant) {
    const size_t number = size_t(variant);
    return number < std::size(kVariantNames) ? kVariantNames[number]
                                             : "unknown";
}

const char* nameOf(Arithmetic arithmetic) {
    constexpr const char* kNames[] = {"auto", "components", "int16"};
    const size_t number = size_t(arithmetic);
    return number < std::size(kNames) ? kNames[number] : "unknown";
}

Variant variantOf(const std::string& name) {
    for (int i = 0; i < int(std::size(kVariantNames)); ++i) {
        if (name == kVariantNames[i]) {
            return Variant(i);
        }
    }
    std::string known;
    for (const char* variant : kVariantNames) {
        known += known.empty() ? "" : ", ";
        known += variant;
    }
    throw Error(formatMessage(
            "variant '%s' is not one of %s", name.c_str(), known.c_str()));
}

} // namespace faiss_bits::cpu
