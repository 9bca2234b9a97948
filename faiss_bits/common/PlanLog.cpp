#include "faiss_bits/common/PlanLog.h"

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>

namespace faiss_bits::detail {

namespace {

bool readVariable() {
    const char* value = std::getenv("FAISS_BITS_LOG");
    const std::string text = value ? value : "";
    if (!text.empty() && text != "0" && text != "1") {
        std::fprintf(
                stderr,
                "faiss_bits: FAISS_BITS_LOG = '%s' is neither 0 nor 1; it "
                "counts as 0\n",
                text.c_str());
    }
    return text == "1";
}

} // namespace

bool logsPlans() {
    static const bool value = readVariable();
    return value;
}

bool isNewShape(const std::string& shape) {
    // Never destroyed: a search may run while the process ends.
    static auto& mutex = *new std::mutex;
    static auto& shapes = *new std::set<std::string>;
    const std::lock_guard<std::mutex> lock(mutex);
    if (shapes.size() >= kMostLoggedShapes || !shapes.insert(shape).second) {
        return false;
    }
    if (shapes.size() == kMostLoggedShapes) {
        std::fprintf(
                stderr,
                "faiss_bits: %zu shapes were logged; no more will be\n",
                kMostLoggedShapes);
    }
    return true;
}

void printPlan(const std::string& shape, const std::string& plan) {
    // One call, so that lines of several threads do not mix.
    std::fprintf(stderr, "faiss_bits: %s: %s\n", shape.c_str(), plan.c_str());
}

} // namespace faiss_bits::detail
