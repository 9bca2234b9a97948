#include "kernels/words/Method.h"

#include "kernels/common/Error.h"

namespace faiss_bits::words {

namespace {

constexpr Method kMethods[] = {
        Method::Auto,
        Method::BruteForce,
        Method::Trie,
        Method::ListOfClusters,
        Method::Sss};

} // namespace

const char* nameOf(Method method) {
    switch (method) {
        case Method::Auto:
            return "auto";
        case Method::BruteForce:
            return "brute_force";
        case Method::Trie:
            return "trie";
        case Method::ListOfClusters:
            return "list_of_clusters";
        case Method::Sss:
            return "sss";
    }
    return "unknown";
}

Method methodOf(const std::string& name) {
    std::string names;
    for (const Method method : kMethods) {
        if (name == nameOf(method)) {
            return method;
        }
        names += (names.empty() ? "" : ", ") + std::string(nameOf(method));
    }
    throw Error(formatMessage(
            "method = '%s' is none of %s", name.c_str(), names.c_str()));
}

} // namespace faiss_bits::words
