#pragma once

#include <cstdlib>
#include <memory>
#include <string>
#include <typeinfo>

#include <cxxabi.h>

/// What an object is, for messages. Not part of the API.
namespace faiss_bits::detail {

/// The name of a type as C++ writes it, such as "faiss::IndexPQ".
inline std::string typeName(const std::type_info& type) {
    const std::unique_ptr<char, void (*)(void*)> name(
            abi::__cxa_demangle(type.name(), nullptr, nullptr, nullptr),
            std::free);
    return name ? name.get() : type.name();
}

} // namespace faiss_bits::detail
