#include "benchs/common/Options.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>

namespace faiss_bits::bench {

namespace {

[[noreturn]] void usage(
        const char* program,
        const std::vector<ExtraOption>& options,
        const std::string& wrong) {
    if (!wrong.empty()) {
        std::fprintf(stderr, "%s: %s\n", program, wrong.c_str());
    }
    std::fprintf(stderr, "usage: %s --out FILE [options]\n", program);
    for (const ExtraOption& option : options) {
        std::fprintf(
                stderr,
                "  %-14s %s\n",
                option.name.c_str(),
                option.help.c_str());
    }
    std::exit(2);
}

std::string today() {
    const std::time_t now = std::time(nullptr);
    char text[32];
    std::strftime(text, sizeof(text), "%Y-%m-%d", std::gmtime(&now));
    return text;
}

int64_t parseNumber(const std::string& text) {
    char* end = nullptr;
    int64_t value = std::strtoll(text.c_str(), &end, 10);
    if (*end == '^' && value == 2) {
        value = int64_t(1) << std::strtol(end + 1, &end, 10);
    }
    if (text.empty() || *end != 0) {
        std::fprintf(stderr, "'%s' is not a number\n", text.c_str());
        std::exit(2);
    }
    return value;
}

} // namespace

bool Options::wants(const std::string& rival) const {
    if (rivals == "all" || rivals == "none") {
        return rivals == "all";
    }
    const auto names = splitList(rivals);
    return std::find(names.begin(), names.end(), rival) != names.end();
}

void Options::requireRivals(const std::vector<std::string>& known) const {
    if (rivals == "all" || rivals == "none") {
        return;
    }
    for (const std::string& name : splitList(rivals)) {
        if (std::find(known.begin(), known.end(), name) == known.end()) {
            std::fprintf(
                    stderr, "--rivals: this build has no '%s'\n", name.c_str());
            std::exit(2);
        }
    }
}

std::vector<std::string> splitList(const std::string& list, char by) {
    std::vector<std::string> parts;
    for (size_t begin = 0; begin <= list.size();) {
        const size_t end = std::min(list.find(by, begin), list.size());
        if (end > begin) {
            parts.push_back(list.substr(begin, end - begin));
        }
        begin = end + 1;
    }
    return parts;
}

std::vector<int64_t> parseNumbers(const std::string& list) {
    std::vector<int64_t> numbers;
    for (const std::string& part : splitList(list)) {
        numbers.push_back(parseNumber(part));
    }
    return numbers;
}

double parseReal(const std::string& text) {
    char* end = nullptr;
    const double number = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0' || !(number >= 0) ||
        !std::isfinite(number)) {
        std::fprintf(stderr, "'%s' is no number from 0 on\n", text.c_str());
        std::exit(2);
    }
    return number;
}

std::vector<double> parseReals(const std::string& list, double divisor) {
    std::vector<double> numbers;
    for (const std::string& part : splitList(list)) {
        numbers.push_back(parseReal(part) / divisor);
    }
    return numbers;
}

int runProgram(int argc, char** argv, int (*run)(int, char**)) {
    try {
        return run(argc, argv);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}

Options parseOptions(
        int argc,
        char** argv,
        const std::vector<ExtraOption>& extra) {
    Options options;
    const char* commit = std::getenv("FAISS_BITS_COMMIT");
    options.commit = commit ? commit : "unknown";
    options.date = today();

    std::vector<ExtraOption> all = {
            {"--out",
             "JSON file to write, kept whole after every row",
             [&](const std::string& v) { options.out = v; }},
            {"--commit",
             "for meta (default: $FAISS_BITS_COMMIT)",
             [&](const std::string& v) { options.commit = v; }},
            {"--date",
             "for meta (default: today)",
             [&](const std::string& v) { options.date = v; }},
            {"--rivals",
             "all, none, or methods such as faiss_block,faiss_warp",
             [&](const std::string& v) { options.rivals = v; }},
            {"--max-seconds",
             "no cell starts after this time",
             [&](const std::string& v) { options.maxSeconds = parseReal(v); }},
    };
    all.insert(all.end(), extra.begin(), extra.end());

    for (int i = 1; i < argc; ++i) {
        const std::string name = argv[i];
        const auto option = std::find_if(
                all.begin(), all.end(), [&](const ExtraOption& candidate) {
                    return candidate.name == name;
                });
        if (option == all.end()) {
            usage(argv[0], all, name == "--help" ? "" : "unknown " + name);
        }
        if (++i == argc) {
            usage(argv[0], all, name + " needs a value");
        }
        option->set(argv[i]);
    }
    if (options.out.empty()) {
        usage(argv[0], all, "--out is missing");
    }
    return options;
}

} // namespace faiss_bits::bench
