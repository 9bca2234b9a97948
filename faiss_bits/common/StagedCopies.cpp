#include "faiss_bits/common/StagedCopies.h"

#include <algorithm>
#include <cstring>
#include <deque>

#include "faiss_bits/common/HostParts.h"
#include "faiss_bits/common/Waiting.h"
#include "kernels/common/CudaCheck.h"

namespace faiss_bits::gpu::detail {

namespace {

/// Of one thread at least, and of one copy of the device at most: a thread
/// copies it in about 150 us and is started in 30.
constexpr size_t kPiece = size_t(1) << 20;
/// Copies of the device for which somebody waits, about.
constexpr size_t kMostPieces = 32;

} // namespace

void copyToDevice(
        int device,
        char* to,
        char* pinned,
        const char* from,
        size_t bytes,
        cudaStream_t stream) {
    forHostParts(idx_t(bytes), kPiece, [&](idx_t begin, idx_t end) {
        BITS_CUDA_CHECK(cudaSetDevice(device)); // of a thread that is new
        for (size_t at = size_t(begin); at < size_t(end); at += kPiece) {
            const size_t now = std::min(kPiece, size_t(end) - at);
            std::memcpy(pinned + at, from + at, now);
            BITS_CUDA_CHECK(cudaMemcpyAsync(
                    to + at, pinned + at, now, cudaMemcpyDefault, stream));
        }
    });
}

void copyFromDevice(
        const std::vector<CopyFromDevice>& copies,
        cudaStream_t stream) {
    size_t bytes = 0;
    for (const CopyFromDevice& copy : copies) {
        bytes += copy.bytes;
    }
    if (bytes < 2 * kPiece) { // no events: most calls have few results
        for (const CopyFromDevice& copy : copies) {
            BITS_CUDA_CHECK(cudaMemcpyAsync(
                    copy.pinned,
                    copy.from,
                    copy.bytes,
                    cudaMemcpyDefault,
                    stream));
        }
        waitFor(stream);
        for (const CopyFromDevice& copy : copies) {
            std::memcpy(copy.to, copy.pinned, copy.bytes);
        }
        return;
    }
    struct Piece {
        CopyFromDevice copy;
        CudaEvent there;
    };
    std::deque<Piece> pieces; // events stay where they are
    const size_t most = std::max(kPiece, bytes / kMostPieces);
    for (const CopyFromDevice& copy : copies) {
        for (size_t at = 0; at < copy.bytes; at += most) {
            Piece& piece = pieces.emplace_back();
            piece.copy = {
                    copy.to + at,
                    copy.pinned + at,
                    copy.from + at,
                    std::min(most, copy.bytes - at)};
            BITS_CUDA_CHECK(cudaMemcpyAsync(
                    piece.copy.pinned,
                    piece.copy.from,
                    piece.copy.bytes,
                    cudaMemcpyDefault,
                    stream));
            piece.there.record(stream);
        }
    }
    // Each thread takes every so many pieces, as they come one after another.
    const size_t threads = std::min<size_t>(bytes / kPiece, kMostThreads);
    forHostParts(idx_t(threads), 1, [&](idx_t begin, idx_t end) {
        for (size_t first = size_t(begin); first < size_t(end); ++first) {
            for (size_t i = first; i < pieces.size(); i += threads) {
                const CopyFromDevice& copy = pieces[i].copy;
                pieces[i].there.wait();
                std::memcpy(copy.to, copy.pinned, copy.bytes);
            }
        }
    });
}

} // namespace faiss_bits::gpu::detail
