/// PagedCall on streams without a GPU: whatever the order in which a device
/// does the work, results are right when the call returns, host memory is free
/// again, and an error leaves nothing behind.

#include <cstring>
#include <memory>
#include <vector>

#include <faiss/impl/AuxIndexStructures.h>
#include <gtest/gtest.h>

#include "faiss_bits/common/PagedCall.h"
#include "tests/flat/FakeResources.h"

namespace faiss_bits::test {
namespace {

using namespace gpu::detail;
using fake::Schedule;

enum class Where { Pageable, Pinned, Device };
constexpr Where kPlaces[] = {Where::Pageable, Where::Pinned, Where::Device};

std::vector<int> arrayAt(Where where, size_t count) {
    std::vector<int> values(count, -1);
    if (where == Where::Pinned) {
        fake::markPinned(values.data(), count * sizeof(int));
    } else if (where == Where::Device) {
        fake::markDevice(values.data(), count * sizeof(int));
    }
    return values;
}

struct Case {
    Where rows = Where::Pageable;
    Where columns = Where::Pageable;
    Where sums = Where::Pageable;
    int64_t count = 1;
    size_t pinnedBytes = 0;
    Schedule schedule = Schedule::Lazy;
    unsigned seed = 1;
    bool waits = false; // PageLimits
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
    return out << "rows " << int(c.rows) << " columns " << int(c.columns)
               << " sums " << int(c.sums) << " count " << c.count << " pinned "
               << c.pinnedBytes << " schedule " << int(c.schedule) << " seed "
               << c.seed;
}

constexpr int kWidth = 1024; // of a row: 4 KiB, 256 rows make 1 MiB
constexpr int kComponents = 3;

/// sums[i][j] = the sum of row i and of column i, and j.
class Sums {
   public:
    explicit Sums(const Case& c)
            : c_(c),
              resources_((fake::reset(c.schedule, c.seed), c.pinnedBytes)),
              rows_(arrayAt(c.rows, c.count * kWidth)),
              columns_(arrayAt(c.columns, c.count * kComponents)),
              sums_(arrayAt(c.sums, c.count * 2)) {
        for (size_t i = 0; i < rows_.size(); ++i) {
            rows_[i] = int(i * 7 % 1001);
        }
        for (size_t i = 0; i < columns_.size(); ++i) {
            columns_[i] = int(i * 31 % 997);
        }
        for (int64_t i = 0; i < c.count; ++i) {
            int sum = 0;
            for (int j = 0; j < kWidth; ++j) {
                sum += rows_[i * kWidth + j];
            }
            for (int j = 0; j < kComponents; ++j) {
                sum += columns_[j * c.count + i];
            }
            expected_.push_back(sum);
            expected_.push_back(sum + 1);
        }
    }

    /// Throws at the page with the number `failing`.
    void run(int failing = -1) {
        const GpuContext context = {
                &resources_, 0, resources_.getDefaultStream(0)};
        PagedCall call(context);
        const int rows = call.input("rows", rows_.data(), kWidth * sizeof(int));
        const int columns = call.columns(
                "columns", columns_.data(), kComponents, sizeof(int));
        const int sums = call.output("sums", sums_.data(), 2 * sizeof(int));
        const int unwanted = call.output("unwanted", nullptr, sizeof(int));
        PageLimits limits;
        limits.rows = c_.count;
        limits.pageBytes = 1;
        limits.waits = c_.waits;
        call.run(limits, [&](const Page& page) {
            if (pages++ == failing) {
                throw Error("says the test");
            }
            const int* in = page.as<const int>(rows);
            const int* components = page.as<const int>(columns);
            int* out = page.as<int>(sums);
            int* more = page.as<int>(unwanted);
            const int64_t count = page.rows;
            fake::enqueue(context.stream, [=] {
                for (int64_t i = 0; i < count; ++i) {
                    int sum = 0;
                    for (int j = 0; j < kWidth; ++j) {
                        sum += in[i * kWidth + j];
                    }
                    for (int j = 0; j < kComponents; ++j) {
                        sum += components[j * count + i];
                    }
                    out[2 * i] = sum;
                    out[2 * i + 1] = sum + 1;
                    more[i] = sum;
                }
            });
            if (c_.waits && c_.seed % 4 == 3) { // it may
                waitFor(context.stream);
            }
        });
    }

    /// What the caller sees, and what comes of overwriting what is its own.
    void expectSums() {
        const auto then = sums_;
        spoilInputs();
        fake::finishAll();
        if (c_.sums == Where::Device) {
            ASSERT_EQ(sums_, expected_) << c_;
        } else {
            ASSERT_EQ(then, expected_) << c_;
            ASSERT_EQ(sums_, expected_) << c_ << ": written later";
        }
    }

    /// Nothing is written to the caller's memory from here on.
    void expectQuiet() {
        const auto then = sums_;
        fake::finishAll();
        if (c_.sums != Where::Device) {
            ASSERT_EQ(sums_, then) << c_;
        }
    }

    int pages = 0;

   private:
    void spoilInputs() {
        if (c_.rows != Where::Device) {
            std::fill(rows_.begin(), rows_.end(), -5);
        }
        if (c_.columns != Where::Device) {
            std::fill(columns_.begin(), columns_.end(), -5);
        }
    }

    Case c_;
    FakeResources resources_;
    std::vector<int> rows_;
    std::vector<int> columns_;
    std::vector<int> sums_;
    std::vector<int> expected_;
};

template <class Check>
void forEveryCase(std::vector<int64_t> counts, Check check) {
    Case c;
    for (int64_t count : counts) {
        for (int places = 0; places < 27; ++places) {
            for (size_t pinned : {size_t(0), size_t(8) << 20}) {
                for (unsigned seed = 0; seed < 8; ++seed) {
                    c.count = count;
                    c.waits = seed % 2 == 1;
                    c.rows = kPlaces[places % 3];
                    c.columns = kPlaces[places / 3 % 3];
                    c.sums = kPlaces[places / 9];
                    c.pinnedBytes = pinned;
                    c.seed = seed;
                    c.schedule = seed < 2 ? Schedule::Lazy
                            : seed < 4    ? Schedule::Eager
                                          : Schedule::Random;
                    check(c);
                }
            }
        }
    }
}

TEST(PagedCall, ResultsAreRightWhereverTheyLie) {
    forEveryCase({1, 7, 255, 1100}, [](const Case& c) {
        Sums sums(c);
        sums.run();
        sums.expectSums();
    });
}

TEST(PagedCall, ManyPagesWhereSomethingIsOnTheHost) {
    Case c;
    c.count = 1100;
    Sums onHost(c);
    onHost.run();
    EXPECT_EQ(onHost.pages, 5);
    c.rows = c.columns = c.sums = Where::Device;
    Sums onDevice(c);
    onDevice.run();
    EXPECT_EQ(onDevice.pages, 1);
}

TEST(PagedCall, DeviceArraysAloneAreNotAwaited) {
    Case c;
    c.rows = c.columns = c.sums = Where::Device;
    c.count = 100;
    Sums sums(c);
    sums.run();
    EXPECT_FALSE(fake::allIdle());
    sums.expectSums();
}

/// What the caller says of its arrays is taken for granted.
TEST(PagedCall, ArraysThatAreKnownToBeOnTheDevice) {
    fake::reset(Schedule::Lazy, 1);
    FakeResources resources(0);
    GpuContext context = {&resources, 0, resources.getDefaultStream(0)};
    int values[4] = {};
    for (const bool isKnown : {false, true}) {
        context.arraysAreOnDevice = isKnown;
        PagedCall call(context);
        const int in = call.input("in", values, sizeof(int));
        const int out = call.output("out", values + 2, sizeof(int));
        EXPECT_EQ(call.isOnHost(in), !isKnown);
        PageLimits limits;
        limits.rows = 2;
        call.run(limits, [&](const Page& page) {
            EXPECT_EQ(page.as<int>(in) == values, isKnown);
            EXPECT_EQ(page.as<int>(out) == values + 2, isKnown);
        });
    }
}

TEST(PagedCall, AnErrorLeavesNoCopyBehind) {
    forEveryCase({100, 1100}, [](const Case& c) {
        for (int failing : {0, 1, 2, 4}) {
            Sums sums(c);
            try {
                sums.run(failing);
            } catch (const Error&) {
                ASSERT_EQ(fake::hostCopies(), 0) << c;
                sums.expectQuiet();
            }
        }
    });
}

struct InterruptAt : faiss::InterruptCallback {
    explicit InterruptAt(int times) : left(times) {}
    bool want_interrupt() override {
        return --left <= 0;
    }
    int left;
};

TEST(PagedCall, AnInterruptLeavesNoCopyBehind) {
    forEveryCase({1100}, [](const Case& c) {
        for (int times : {1, 3}) {
            Sums sums(c);
            faiss::InterruptCallback::instance =
                    std::make_unique<InterruptAt>(times);
            bool interrupted = false;
            try {
                sums.run();
            } catch (const faiss::FaissException& error) {
                interrupted = std::string(error.what())
                                      .find("computation interrupted") !=
                        std::string::npos;
            }
            faiss::InterruptCallback::clear_instance();
            // Columns and sums alone are one short page.
            if (c.sums != Where::Device && c.rows != Where::Device) {
                ASSERT_TRUE(interrupted) << c;
                ASSERT_LE(sums.pages, times + 1) << c;
            }
            if (interrupted) {
                ASSERT_EQ(fake::hostCopies(), 0) << c;
                sums.expectQuiet();
            }
        }
    });
}

} // namespace
} // namespace faiss_bits::test
