#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace faiss_bits::bench {

/// What all benches take on the command line.
struct Options {
    std::string out;            ///< JSON file; required
    std::string commit;         ///< default: $FAISS_BITS_COMMIT, else "unknown"
    std::string date;           ///< default: today, as 2026-01-31
    std::string rivals = "all"; ///< all, none, or method names with commas
    double maxSeconds = 1e9;    ///< cells that would start later are left out

    bool wants(const std::string& rival) const;

    /// Exits with 2 unless every rival that is named is one of `known`.
    void requireRivals(const std::vector<std::string>& known) const;
};

/// One more option of a program: "--name value".
struct ExtraOption {
    std::string name;
    std::string help;
    std::function<void(const std::string&)> set;
};

/// Reads the command line, or prints what is wrong with it and exits with 2.
Options parseOptions(
        int argc,
        char** argv,
        const std::vector<ExtraOption>& extra);

/// What `run` returns; 1, and the reason on stderr, if it throws.
int runProgram(int argc, char** argv, int (*run)(int, char**));

/// "1,10,2^20" to numbers. Exits with 2 on anything else.
std::vector<int64_t> parseNumbers(const std::string& list);

/// A number. Exits with 2 on what is none or below 0.
double parseReal(const std::string& text);

/// "0.01,1e-3" to numbers, each divided by `divisor`. Exits with 2 on what is
/// no number or below 0.
std::vector<double> parseReals(const std::string& list, double divisor = 1);

/// "a,b" to its parts.
std::vector<std::string> splitList(const std::string& list, char by = ',');

} // namespace faiss_bits::bench
