#pragma once

#include <cstdint>
#include <string>

/// How words are searched; every method gives the same answers.
namespace faiss_bits::words {

enum class Method : uint8_t {
    Auto,           ///< the fastest known for the query and the distance
    BruteForce,     ///< the distance to every word
    Trie,           ///< prefixes once, and none that is too far
    ListOfClusters, ///< Barrientos et al. 2012, II-A: buckets of 32 words
    Sss,            ///< the same, II-B: pivots; alpha = 0.5
};

/// As in Python: "auto", "brute_force", "trie", "list_of_clusters", "sss".
const char* nameOf(Method method);

/// The method of a name. Throws Error that lists the names.
Method methodOf(const std::string& name);

} // namespace faiss_bits::words
