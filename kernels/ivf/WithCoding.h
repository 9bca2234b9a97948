#pragma once

#include <type_traits>

#include "kernels/ivf/IvfLists.h"

namespace faiss_bits {

/// Calls body(constant) with the coding as a constant.
template <class Body>
void withCoding(ListCoding coding, const Body& body) {
    const auto call = [&]<ListCoding kCoding>() {
        body(std::integral_constant<ListCoding, kCoding>());
    };
    switch (coding) {
        case ListCoding::Float32:
            return call.template operator()<ListCoding::Float32>();
        case ListCoding::Float16:
            return call.template operator()<ListCoding::Float16>();
        case ListCoding::Scalar8:
            return call.template operator()<ListCoding::Scalar8>();
        case ListCoding::Scalar6:
            return call.template operator()<ListCoding::Scalar6>();
        case ListCoding::Scalar4:
            return call.template operator()<ListCoding::Scalar4>();
        case ListCoding::Product:
            return call.template operator()<ListCoding::Product>();
    }
}

} // namespace faiss_bits
