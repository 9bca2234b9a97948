#include "faiss_bits/many/DeviceCopies.h"

#include <algorithm>
#include <array>
#include <utility>

#include "faiss_bits/flat/GpuIndexBitsFlat.h"
#include "faiss_bits/many/PeerAccess.h"
#include "faiss_bits/many/PeerCopy.h"
#include "kernels/common/CudaCheck.h"

namespace faiss_bits::gpu::detail {

namespace {

constexpr size_t kPiece = size_t(4) << 20;

} // namespace

struct DeviceCopies::Path {
    Path(int to, int from) : toDevice(to), fromDevice(from) {}
    ~Path() {
        if (pinned) {
            (void)cudaFreeHost(pinned);
        }
    }

    int toDevice;
    int fromDevice;
    bool direct = false;
    char* pinned = nullptr; // two pieces
    /// Of each piece: it is filled, and it is read.
    std::array<std::unique_ptr<CudaEvent>, 2> filled;
    std::array<std::unique_ptr<CudaEvent>, 2> read;
};

DeviceCopies::DeviceCopies(
        const ManyDevices& devices,
        const GpuIndexBitsManyConfig& config)
        : numGroups_(int(devices.groups().size())) {
    for (int to = 0; to < numGroups_; ++to) {
        for (int from = 0; from < numGroups_; ++from) {
            paths_.push_back(std::make_unique<Path>(
                    devices.groups()[to].device,
                    devices.groups()[from].device));
            Path& path = *paths_.back();
            path.direct = config.usePeerAccess &&
                    (path.toDevice == path.fromDevice ||
                     enablePeerAccess(path.toDevice, path.fromDevice));
        }
    }
}

DeviceCopies::~DeviceCopies() = default;

bool DeviceCopies::isDirect(int to, int from) const {
    return path_(to, from).direct;
}

void DeviceCopies::copy(
        int to,
        void* target,
        cudaStream_t targetStream,
        int from,
        const void* source,
        cudaStream_t sourceStream,
        size_t bytes) {
    Path& path = path_(to, from);
    if (!path.direct) {
        copyThroughHost_(
                path, target, targetStream, source, sourceStream, bytes);
        return;
    }
    StreamMark ready;
    {
        const CurrentDevice scope(path.fromDevice);
        ready.record(sourceStream);
    }
    ready.holdUp(targetStream);
    copyStraight_(path, target, targetStream, source, bytes);
    const CurrentDevice scope(path.toDevice);
    StreamMark done;
    done.record(targetStream);
    done.holdUp(sourceStream);
}

void DeviceCopies::fetch(
        int to,
        void* target,
        cudaStream_t targetStream,
        int from,
        const void* source,
        const StreamMark& ready,
        cudaStream_t helper,
        size_t bytes,
        std::optional<bool> canUseSource) {
    Path& path = path_(to, from);
    if (path.direct) {
        ready.holdUpUnlessDone(targetStream);
        if (canCopyByKernel(target, source, bytes) &&
            (canUseSource ? *canUseSource : canUse(source))) {
            copyByKernel(target, source, bytes, targetStream);
        } else {
            copyStraight_(path, target, targetStream, source, bytes);
        }
        return;
    }
    ready.holdUp(helper);
    copyThroughHost_(path, target, targetStream, source, helper, bytes);
}

void DeviceCopies::send(
        int to,
        void* target,
        cudaStream_t helper,
        int from,
        const void* source,
        cudaStream_t sourceStream,
        size_t bytes,
        StreamMark& done) {
    Path& path = path_(to, from);
    if (path.direct && path_(from, to).direct) {
        const CurrentDevice scope(path.fromDevice);
        BITS_CUDA_CHECK(cudaMemcpyPeerAsync(
                target,
                path.toDevice,
                source,
                path.fromDevice,
                bytes,
                sourceStream));
        done.record(sourceStream);
        return;
    }
    copyThroughHost_(path, target, helper, source, sourceStream, bytes);
    const CurrentDevice scope(path.toDevice);
    done.record(helper);
}

void DeviceCopies::addSome(
        int to,
        const GpuContext& context,
        const GpuContext& home,
        const float* x,
        idx_t n,
        int d,
        const std::function<void(idx_t first, idx_t rows, const float* copy)>&
                add) {
    constexpr size_t kAtOnce = size_t(64) << 20;
    const size_t rowBytes = size_t(d) * sizeof(float);
    const idx_t most = std::max<idx_t>(1, idx_t(kAtOnce / rowBytes));
    auto some = allocTemporary(context, std::min(n, most) * rowBytes);
    for (idx_t first = 0; first < n; first += most) {
        const idx_t rows = std::min(most, n - first);
        // Not straight: on two H200s additions of 2 GiB failed so ("unspecified
        // launch failure") where the vectors' memory had been taken after peer
        // access was switched on. The cause is not found.
        copyThroughHost_(
                path_(to, 0),
                some.get(),
                context.stream,
                x + first * d,
                home.resources->getAsyncCopyStream(home.device),
                rows * rowBytes);
        add(first, rows, static_cast<const float*>(some.get()));
    }
    waitFor(context.stream);
}

void DeviceCopies::copyStraight_(
        const Path& path,
        void* target,
        cudaStream_t targetStream,
        const void* source,
        size_t bytes) {
    const CurrentDevice scope(path.toDevice);
    BITS_CUDA_CHECK(cudaMemcpyPeerAsync(
            target,
            path.toDevice,
            source,
            path.fromDevice,
            bytes,
            targetStream));
}

void DeviceCopies::copyThroughHost_(
        Path& path,
        void* target,
        cudaStream_t targetStream,
        const void* source,
        cudaStream_t sourceStream,
        size_t bytes) {
    if (!path.pinned) {
        std::array<std::unique_ptr<CudaEvent>, 2> filled;
        std::array<std::unique_ptr<CudaEvent>, 2> read;
        for (int slot = 0; slot < 2; ++slot) {
            const CurrentDevice from(path.fromDevice);
            filled[slot] = std::make_unique<CudaEvent>();
            const CurrentDevice to(path.toDevice);
            read[slot] = std::make_unique<CudaEvent>();
        }
        void* memory = nullptr;
        BITS_CUDA_CHECK(
                cudaHostAlloc(&memory, 2 * kPiece, cudaHostAllocPortable));
        path.pinned = static_cast<char*>(memory);
        path.filled = std::move(filled);
        path.read = std::move(read);
    }
    int slot = 0;
    for (size_t at = 0; at < bytes; at += kPiece, slot = 1 - slot) {
        const size_t now = std::min(kPiece, bytes - at);
        char* const piece = path.pinned + slot * kPiece;
        {
            const CurrentDevice scope(path.fromDevice);
            path.read[slot]->holdUp(sourceStream); // of the copy before
            BITS_CUDA_CHECK(cudaMemcpyAsync(
                    piece,
                    static_cast<const char*>(source) + at,
                    now,
                    cudaMemcpyDeviceToHost,
                    sourceStream));
            path.filled[slot]->record(sourceStream);
        }
        const CurrentDevice scope(path.toDevice);
        path.filled[slot]->holdUp(targetStream);
        BITS_CUDA_CHECK(cudaMemcpyAsync(
                static_cast<char*>(target) + at,
                piece,
                now,
                cudaMemcpyHostToDevice,
                targetStream));
        path.read[slot]->record(targetStream);
    }
}

} // namespace faiss_bits::gpu::detail
