#pragma once

#include <cstddef>
#include <string>

/// What FAISS_BITS_LOG=1 prints. Not part of the API.
namespace faiss_bits::detail {

/// True if the environment's FAISS_BITS_LOG is 1. Read at the first call, once
/// a process; 0 and nothing mean off, and so does any other value, after a
/// warning to stderr.
bool logsPlans();

/// Shapes that are remembered, and so logged, by a process.
constexpr size_t kMostLoggedShapes = 1000;

/// True for a shape that was not logged before and may be now.
bool isNewShape(const std::string& shape);
void printPlan(const std::string& shape, const std::string& plan);

/// Prints "faiss_bits: <shape>: <plan>" to stderr, if it is the first call with
/// this shape. Both are functions that return a text, called where it is
/// wanted. Safe from several threads; a test of a flag where the log is off.
/// After kMostLoggedShapes shapes it says so and prints no more.
template <class Shape, class Plan>
void logPlan(const Shape& shape, const Plan& plan) {
    if (!logsPlans()) {
        return;
    }
    const std::string text = shape();
    if (isNewShape(text)) {
        printPlan(text, plan());
    }
}

} // namespace faiss_bits::detail
