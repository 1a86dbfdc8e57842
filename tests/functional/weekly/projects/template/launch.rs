let stream = device.cuda_stream();
        let (address, guard) = out.device_ptr_mut(&stream);
        // SAFETY: the arguments are those of the launcher.
        unsafe { PACKAGE::launch_halve(1000, address, stream.cu_stream().cast()) };
        drop(guard);
