/// The constants of the cost model: measured, kept in a file, read again.

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cpu/FusedKnn.h"
#include "kernels/cpu/FusedMachineFile.h"
#include "tests/common/ExpectError.h"

namespace faiss_bits::test {
namespace {

constexpr const char* kVariable = "FAISS_BITS_CPU_MACHINE";

TEST(FusedMachine, IsMeasuredOnceAndPlausible) {
    const FusedMachine& machine = fusedMachine();
    EXPECT_EQ(&machine, &fusedMachine());
    EXPECT_GT(machine.operationsPerSecond, 1e7);
    EXPECT_LT(machine.operationsPerSecond, 1e13);
    EXPECT_GT(machine.secondsPerValue, 1e-13);
    EXPECT_LT(machine.secondsPerValue, 1e-6);
    EXPECT_GT(machine.secondsPerAccess, 1e-12);
    EXPECT_LT(machine.secondsPerAccess, 1e-4);
    EXPECT_GT(machine.cacheBytes, 1e4);
    EXPECT_GE(machine.sharedBytes, machine.cacheBytes);
}

FusedMachine someMachine() {
    FusedMachine machine;
    machine.operationsPerSecond = 1.0e11 / 3;
    machine.secondsPerValue = 2.0e-10 / 7;
    machine.secondsPerAccess = 1.5e-8;
    machine.cacheBytes = 1 << 20;
    machine.sharedBytes = 32 << 20;
    machine.lanes = 16;
    return machine;
}

bool operator==(const FusedMachine& a, const FusedMachine& b) {
    return a.operationsPerSecond == b.operationsPerSecond &&
            a.secondsPerValue == b.secondsPerValue &&
            a.secondsPerAccess == b.secondsPerAccess &&
            a.cacheBytes == b.cacheBytes && a.sharedBytes == b.sharedBytes &&
            a.lanes == b.lanes;
}

/// Its folder goes with it.
class FusedMachineFile : public ::testing::Test {
   protected:
    FusedMachineFile() {
        std::string name = ::testing::TempDir() + "machineXXXXXX";
        folder_ = mkdtemp(name.data());
        file_ = folder_ + "/machine";
    }
    ~FusedMachineFile() override {
        std::filesystem::remove_all(folder_);
    }

    void write(const std::string& text) const {
        std::ofstream(file_) << text;
    }
    std::string text() const {
        std::ifstream in(file_);
        return std::string(
                std::istreambuf_iterator<char>(in),
                std::istreambuf_iterator<char>());
    }
    ::testing::AssertionResult isRefused(const std::string& why) const {
        FusedMachine machine;
        return throwsNaming(
                [&] { (void)readFusedMachine(file_, machine); }, file_, why);
    }

    std::string folder_, file_;
};

TEST_F(FusedMachineFile, KeepsEveryBit) {
    FusedMachine machine;
    EXPECT_FALSE(readFusedMachine(file_, machine));
    writeFusedMachine(file_, someMachine());
    EXPECT_TRUE(readFusedMachine(file_, machine));
    EXPECT_TRUE(machine == someMachine());
    // Written over, with nothing else left in the folder.
    FusedMachine other = someMachine();
    other.lanes = 8;
    writeFusedMachine(file_, other);
    EXPECT_TRUE(readFusedMachine(file_, machine));
    EXPECT_TRUE(machine == other);
    EXPECT_EQ(
            std::distance(
                    std::filesystem::directory_iterator(folder_),
                    std::filesystem::directory_iterator()),
            1);
}

TEST_F(FusedMachineFile, WrongOnesAreRefused) {
    writeFusedMachine(file_, someMachine());
    const std::string good = text();
    for (const char* bad :
         {"cacheBytes",
          "cacheBytes much",
          "cacheBytes -1",
          "cacheBytes 0",
          "cacheBytes inf",
          "cacheBytes nan",
          "cacheBytes 1 2",
          "cacheByte 1",
          "lanes 3.5",
          "lanes 1e9"}) {
        const std::string name = std::string(bad).substr(0, 5);
        std::string changed = good;
        const size_t at = changed.find("\n" + name) + 1;
        changed.replace(at, changed.find('\n', at) - at, bad);
        write(changed);
        EXPECT_TRUE(isRefused(bad)) << bad;
    }
    write(good + "lanes 16\n");
    EXPECT_TRUE(isRefused("lanes 16")); // twice
    write(good.substr(0, good.find("secondsPerValue")));
    EXPECT_TRUE(isRefused("secondsPerValue is missing"));
    write("");
    EXPECT_TRUE(isRefused("missing"));
    write("# only a comment\n\n" + good);
    FusedMachine machine;
    EXPECT_TRUE(readFusedMachine(file_, machine));
    EXPECT_TRUE(machine == someMachine());
}

TEST_F(FusedMachineFile, AFolderOrAWrongPathIsAnError) {
    EXPECT_TRUE(throwsNaming(
            [&] { writeFusedMachine(file_ + "/none/x", someMachine()); },
            kVariable,
            file_ + "/none/x"));
    EXPECT_TRUE(throwsNaming(
            [&] { writeFusedMachine(folder_, someMachine()); },
            kVariable,
            folder_));
    file_ = folder_;
    EXPECT_TRUE(isRefused(""));
}

/// Constants are fixed once a process, so that each of these has one.
class FusedMachineFileDeathTest : public FusedMachineFile {
   protected:
    FusedMachineFileDeathTest() {
        GTEST_FLAG_SET(death_test_style, "threadsafe");
    }
};

FusedKnnProblem<float> shape() {
    FusedKnnProblem<float> p;
    p.numQueries = 100;
    p.numVectors = 1000;
    p.d = 16;
    p.k = 10;
    p.threads = 1;
    return p;
}

[[noreturn]] void exitAfterMeasuring(const std::string& file) {
    setenv(kVariable, file.c_str(), 1);
    FusedMachine kept;
    const bool wasThere = readFusedMachine(file, kept);
    (void)planFusedKnn(shape());
    const bool isThere = readFusedMachine(file, kept);
    std::_Exit(!wasThere && isThere && kept == fusedMachine() ? 0 : 1);
}

TEST_F(FusedMachineFileDeathTest, TheFirstProcessWritesIt) {
    EXPECT_EXIT(exitAfterMeasuring(file_), ::testing::ExitedWithCode(0), "");
}

/// Searches twice, the second time large enough to ask for the constants.
[[noreturn]] void exitAfterSearching(const std::string& file) {
    setenv(kVariable, file.c_str(), 1);
    FusedKnnProblem<float> p = shape();
    p.numQueries = p.numVectors = 20000;
    p.d = 32; // 2.6e10 operations
    p.threads = 0;
    const std::vector<float> vectors(p.numVectors * p.d, 1.f);
    std::vector<float> distances(p.numQueries * p.k);
    std::vector<idx_t> ids(p.numQueries * p.k, -1);
    p.queries = p.vectors = vectors.data();
    p.outDistances = distances.data();
    p.outIds = ids.data();
    runFusedKnn(p);
    (void)planFusedKnn(shape());
    std::_Exit(fusedMachineIsMeasured() && ids.back() == p.k - 1 ? 0 : 1);
}

TEST_F(FusedMachineFileDeathTest, OneThatCannotBeWrittenIsAWarning) {
    write("");
    for (const char* name : {"/none/machine", "/machine/machine"}) {
        // Once: the expression has to match everything that is printed. The
        // process has a folder of its own.
        EXPECT_EXIT(
                exitAfterSearching(folder_ + name),
                ::testing::ExitedWithCode(0),
                std::string("^faiss_bits: warning: FAISS_BITS_CPU_MACHINE "
                            "'[^\n]*") +
                        name + "': cannot be written[^\n]*\n$");
    }
}

[[noreturn]] void exitAfterReading(const std::string& file) {
    // A machine of which a multiply-add takes a minute.
    FusedMachine slow = someMachine();
    slow.operationsPerSecond = 1.0 / 60;
    writeFusedMachine(file, slow);
    setenv(kVariable, file.c_str(), 1);
    const FusedPlan plan = planFusedKnn(shape());
    std::_Exit(plan.predictedSeconds > 1e6 && fusedMachine() == slow ? 0 : 1);
}

TEST_F(FusedMachineFileDeathTest, LaterOnesPlanByIt) {
    EXPECT_EXIT(exitAfterReading(file_), ::testing::ExitedWithCode(0), "");
}

/// More of anything is not predicted to be faster, on a machine that no other
/// process slows down while it is measured.
[[noreturn]] void exitAfterPredicting(const std::string& file) {
    writeFusedMachine(file, someMachine());
    setenv(kVariable, file.c_str(), 1);
    const auto seconds = [](idx_t q, idx_t n, int d, idx_t k) {
        FusedKnnProblem<float> p = shape();
        p.numQueries = q;
        p.numVectors = n;
        p.d = d;
        p.k = k;
        p.threads = 2;
        return planFusedKnn(p).predictedSeconds;
    };
    const double one = seconds(1000, 10000, 64, 16);
    EXPECT_GT(seconds(8000, 10000, 64, 16), 2 * one);
    EXPECT_GT(seconds(1000, 80000, 64, 16), 2 * one);
    EXPECT_GT(seconds(1000, 10000, 512, 16), 2 * one);
    EXPECT_GE(seconds(1000, 10000, 64, 2000), one);
    std::_Exit(::testing::Test::HasFailure() ? 1 : 0);
}

TEST_F(FusedMachineFileDeathTest, PredictionsGrowWithTheSearch) {
    EXPECT_EXIT(exitAfterPredicting(file_), ::testing::ExitedWithCode(0), "");
}

[[noreturn]] void exitAfterRefusal(const std::string& file) {
    std::ofstream(file) << "lanes\n";
    setenv(kVariable, file.c_str(), 1);
    const bool refused = bool(throwsNaming(
            [&] { (void)planFusedKnn(shape()); }, kVariable, file));
    // Mended: the next search finds it.
    writeFusedMachine(file, someMachine());
    (void)planFusedKnn(shape());
    std::_Exit(refused && fusedMachine() == someMachine() ? 0 : 1);
}

TEST_F(FusedMachineFileDeathTest, AWrongOneEndsTheSearchThatReadsIt) {
    EXPECT_EXIT(exitAfterRefusal(file_), ::testing::ExitedWithCode(0), "");
}

} // namespace
} // namespace faiss_bits::test
