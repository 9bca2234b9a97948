/// Where FAISS's tests with our classes in place of its own cannot run: they
/// are skipped, whoever starts the program, and the log says why.

#include <string>

#include <gtest/gtest.h>

#include "tests/common/GpuTest.h"

namespace faiss_bits::test {
namespace {

/// Why no test can run, or an empty text.
std::string reasonToSkip() {
    // FAISS's tests end the process where there is no driver.
    static const bool hasDevice = hasCudaDevice();
    if (!hasDevice) {
        return "no CUDA device";
    }
    return "";
}

class Skips : public ::testing::EmptyTestEventListener {
    // A skip at the start of a test keeps its body from running.
    void OnTestStart(const ::testing::TestInfo&) override {
        const std::string reason = reasonToSkip();
        if (!reason.empty()) {
            GTEST_SKIP() << reason;
        }
    }
};

/// Before main, which is FAISS's.
[[maybe_unused]] const bool added = [] {
    ::testing::UnitTest::GetInstance()->listeners().Append(new Skips);
    return true;
}();

} // namespace
} // namespace faiss_bits::test
