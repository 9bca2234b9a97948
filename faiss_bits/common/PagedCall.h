#pragma once

#include <array>
#include <functional>
#include <vector>

#include "faiss_bits/common/GpuStaging.h"
#include "faiss_bits/common/PagePlan.h"
#include "faiss_bits/common/PinnedMemory.h"
#include "faiss_bits/common/Waiting.h"

namespace faiss_bits::gpu::detail {

/// Rows [first, first + rows) of every array of a call, on the device.
class Page {
   public:
    idx_t first = 0;
    idx_t rows = 0;

    /// `array` as PagedCall::input and output have numbered it.
    template <class T>
    T* as(int array) const {
        return static_cast<T*>(places_[array]);
    }

   private:
    friend class PagedCall;
    static constexpr int kMaxArrays = 4;
    std::array<void*, kMaxArrays> places_ = {};
};

/// One call over rows of arrays that lie on the host or on the device, in any
/// mix. Rows on the device are used in place. Rows on the host go through the
/// device in pages, two in turn: while a page is computed, the results of the
/// one before leave and the rows of the next one arrive.
///
/// Waits   none where all arrays are on the device. Else the call returns when
///         the host memory may be used again, and meanwhile never has more than
///         two pages under way. faiss::InterruptCallback is asked at every page
///         and, while a long one is awaited, every 20 ms; if it wants, the work
///         under way is awaited and FaissException "computation interrupted"
///         thrown
/// Copies  of pageable memory go through the resources' pinned memory, half of
///         it a page, if there is enough of it and no other call has it. Else
///         the driver copies them, which is slower; and those of a single page
///         of less than 8 MiB, which it copies as fast. Several threads copy to
///         and from pinned memory where a page is large. Memory
///         that is pinned or managed is copied from where it lies. Several
///         pages are copied on the resources' stream for asynchronous copies
/// Memory  staging of two pages (PagePlan.h) from the temporary memory; where
///         that is too small it comes from cudaMalloc, and both that and its
///         release wait for the device
/// Errors  whatever `compute` throws, after copies to and from the caller's
///         memory have ended
class PagedCall {
   public:
    using Compute = std::function<void(const Page&)>;

    explicit PagedCall(const GpuContext& context) : context_(context) {}

    /// Rows that kernels read: [rows, rowBytes]. Throws FaissException naming
    /// the array if it lies on another device.
    int input(const char* name, const void* data, size_t rowBytes);

    /// The same as columns of a matrix [components, rows] of elements. A page
    /// is [components, rows of the page].
    int columns(
            const char* name,
            const void* data,
            int components,
            size_t elementBytes);

    /// Rows that kernels write. Null data, and host memory that is `ignored`,
    /// is computed and thrown away.
    int output(
            const char* name,
            void* data,
            size_t rowBytes,
            bool ignored = false);

    /// Rows that are not there yet, of an input or an output that will lie at
    /// `place`: for plan() alone.
    void expectInput(Place place, size_t rowBytes);
    void expectOutput(Place place, size_t rowBytes);

    /// How run() cuts the call; it takes no memory. The resources may be null:
    /// there is no pinned memory then.
    const PagePlan& plan(const PageLimits& limits);

    /// That of run(), from its first page on.
    const PagePlan& plan() const {
        return plan_;
    }

    /// Temporary memory that run() takes, after plan().
    size_t stagingBytes() const;

    bool isOnHost(int array) const {
        return arrays_[array].onHost;
    }

    /// Calls `compute` page by page; it enqueues on the context's stream.
    void run(const PageLimits& limits, const Compute& compute);

   private:
    struct Array {
        char* data = nullptr;
        size_t rowBytes = 0;
        size_t elementBytes = 0; // of columns; 0: rows lie together
        bool isOutput = false;
        bool onHost = false;
        bool pageable = false;
        bool staged = false;
        // Of the two pages in turn.
        std::array<char*, 2> device = {};
        std::array<char*, 2> pinned = {};

        bool returns() const {
            return isOutput && onHost && data;
        }
    };

    int add_(const char* name, Array array);
    void expect_(Place place, size_t rowBytes, bool isOutput);
    size_t bytesOf_(const Array& array) const;
    int slotsOf_(const Array& array) const;
    bool anyReturns_() const;
    void allocate_();
    void placePinned_();
    void placeFewResults_();
    Page pageAt_(idx_t number) const;
    void copyIn_(const Page& page, int slot, cudaStream_t stream);
    void copyBack_(const Page& page, int slot, cudaStream_t stream) const;
    void runOnDevice_(const Compute& compute);
    void runOnePage_(const Compute& compute);
    void runManyPages_(const Compute& compute);

    const GpuContext& context_;
    std::vector<Array> arrays_;
    bool isExpected_ = false; // there are arrays that are not there yet
    idx_t rows_ = 0;
    bool waits_ = false; // PageLimits
    PagePlan plan_;
    PinnedMemory pinned_;
    TemporaryMemory staging_;
};

} // namespace faiss_bits::gpu::detail
