//! The patterns of clean programs. Each has its own lines of code, and its comment states the
//! blocks that are live at the end.

use std::collections::VecDeque;
use std::thread;

use candle_core::{Result, Tensor};

use super::{HISTORY, Plan};

/// The state of one pattern. It is called in every iteration, with its index.
pub(super) type Step = Box<dyn FnMut(usize) -> Result<()>>;

pub(super) type Make = fn(&mut Plan) -> Step;

pub(super) const PATTERNS: &[(&str, Make)] = &[
    ("cache that fills", cache_that_fills),
    ("cache that fills now and then", cache_that_fills_now_and_then),
    ("ring", ring),
    ("double buffer", double_buffer),
    ("varying shapes", varying_shapes),
    ("list that is flushed", list_that_is_flushed),
    ("list that is truncated", list_that_is_truncated),
    ("cache of a request", cache_of_a_request),
    ("threads", threads),
    ("queue", queue),
    ("lazy tables", lazy_tables),
    ("peaks", peaks),
    ("workspace", workspace),
    ("numbers", numbers),
    ("host buffer", host_buffer),
];

/// Live: all of the cache, allocated before the middle.
fn cache_that_fills(plan: &mut Plan) -> Step {
    let (size, full, device) = (plan.size(), plan.early(), plan.device.clone());
    let mut cache: Vec<Tensor> = Vec::new();
    Box::new(move |i| {
        if i <= full {
            cache.push(zeros!(size, &device)?);
        }
        Ok(())
    })
}

/// A cache with hits between the misses. The last miss is so early that one more would have to
/// follow before the end if the cache still grew. Live: all of it.
fn cache_that_fills_now_and_then(plan: &mut Plan) -> Step {
    let (size, full, device) = (plan.size(), plan.early(), plan.device.clone());
    let every = plan.random.between(2, 4);
    let mut cache: Vec<Tensor> = Vec::new();
    Box::new(move |i| {
        if i <= full && i % every == 0 {
            cache.push(zeros!(size, &device)?);
        }
        Ok(())
    })
}

/// Live: the last block of each slot.
fn ring(plan: &mut Plan) -> Step {
    let (size, slots, device) = (plan.size(), plan.span(), plan.device.clone());
    let mut ring: Vec<Option<Tensor>> = vec![None; slots];
    Box::new(move |i| {
        ring[i % slots] = Some(zeros!(size, &device)?);
        Ok(())
    })
}

/// Live: the blocks of the last two iterations, of one size or of two alternating sizes.
fn double_buffer(plan: &mut Plan) -> Step {
    let (sizes, device) = ([plan.size(), plan.size()], plan.device.clone());
    let mut buffers: [Option<Tensor>; 2] = [None, None];
    Box::new(move |i| {
        buffers.swap(0, 1);
        buffers[0] = Some(zeros!(sizes[i % 2], &device)?);
        Ok(())
    })
}

/// Live: nothing, or the last output.
fn varying_shapes(plan: &mut Plan) -> Step {
    let (device, mut random) = (plan.device.clone(), plan.random.clone());
    let keeps = random.between(0, 1) == 1;
    let mut output: Vec<Tensor> = Vec::new();
    Box::new(move |_| {
        let input = zeros!(random.between(1, 5000), &device)?;
        output.clear();
        output.extend(keeps.then_some(input.affine(2.0, 1.0)?));
        Ok(())
    })
}

/// Live: the blocks since the last flush.
fn list_that_is_flushed(plan: &mut Plan) -> Step {
    let (size, every, device) = (plan.size(), plan.span(), plan.device.clone());
    let at_once = plan.random.between(1, 3);
    let mut list: Vec<Tensor> = Vec::new();
    Box::new(move |i| {
        if i % every == 0 {
            list.clear();
        }
        for _ in 0..at_once {
            list.push(zeros!(size, &device)?);
        }
        Ok(())
    })
}

/// Live: the newest blocks, up to the length to which the list is truncated.
fn list_that_is_truncated(plan: &mut Plan) -> Step {
    let (size, most, device) = (plan.size(), plan.span(), plan.device.clone());
    let mut list: Vec<Tensor> = Vec::new();
    Box::new(move |_| {
        list.insert(0, zeros!(size, &device)?);
        list.truncate(most);
        Ok(())
    })
}

/// A cache that is concatenated again at every token, and cleared with the request. Live: the
/// newest cache.
fn cache_of_a_request(plan: &mut Plan) -> Step {
    let (size, tokens, device) = (plan.size(), plan.span(), plan.device.clone());
    let mut cache: Option<Tensor> = None;
    Box::new(move |i| {
        let token = zeros!(size, &device)?;
        cache = Some(match cache.take().filter(|_| i % tokens != 0) {
            Some(cache) => Tensor::cat(&[&cache, &token], 0)?,
            None => token,
        });
        Ok(())
    })
}

/// Live: nothing, or the results of the last iteration's threads.
fn threads(plan: &mut Plan) -> Step {
    let (size, device) = (plan.size(), plan.device.clone());
    let (count, keeps) = (plan.random.between(1, 3), plan.random.between(0, 1) == 1);
    let mut made: Vec<Tensor> = Vec::new();
    Box::new(move |_| {
        made.clear();
        let results: Vec<Result<Tensor>> = thread::scope(|scope| {
            let work = || zeros!(size, &device)?.affine(2.0, 1.0);
            let started: Vec<_> = (0..count).map(|_| scope.spawn(work)).collect();
            started.into_iter().map(|one| one.join().expect("no thread panics")).collect()
        });
        if keeps {
            made = results.into_iter().collect::<Result<_>>()?;
        }
        Ok(())
    })
}

/// A queue, first in, first out, whose length rises and falls alternately. Live: its content.
fn queue(plan: &mut Plan) -> Step {
    let (size, rise, device) = (plan.size(), plan.half / 4, plan.device.clone());
    let rise = plan.random.between(1, rise.max(1));
    let mut queue: VecDeque<Tensor> = VecDeque::new();
    Box::new(move |i| {
        // Two in and none out, then none in and two out.
        if i % (2 * rise) < rise {
            for _ in 0..2 {
                queue.push_back(zeros!(size, &device)?);
            }
        } else {
            queue.drain(..2);
        }
        Ok(())
    })
}

/// Live: all tables, allocated before the middle.
fn lazy_tables(plan: &mut Plan) -> Step {
    let device = plan.device.clone();
    let wanted: Vec<(usize, usize)> =
        (0..plan.random.between(1, 4)).map(|_| (plan.early(), plan.size())).collect();
    let mut tables: Vec<Tensor> = Vec::new();
    Box::new(move |i| {
        for &(first, size) in &wanted {
            if i == first {
                tables.push(zeros!(size, &device)?);
            }
        }
        Ok(())
    })
}

/// Live: nothing.
fn peaks(plan: &mut Plan) -> Step {
    let (device, mut random) = (plan.device.clone(), plan.random.clone());
    Box::new(move |_| {
        if random.between(0, 3) == 0 {
            zeros!(1 << random.between(12, 18), &device)?;
        }
        Ok(())
    })
}

/// A buffer that is replaced when a larger one is needed. The largest is needed before the middle.
/// Live: the largest.
fn workspace(plan: &mut Plan) -> Step {
    let (device, middle, mut random) = (plan.device.clone(), plan.middle, plan.random.clone());
    let mut workspace: Option<Tensor> = None;
    Box::new(move |i| {
        let has = workspace.as_ref().map_or(0, Tensor::elem_count);
        let needs = random.between(1, 5000);
        if needs > has && (i < middle || has == 0) {
            workspace = Some(zeros!(needs, &device)?);
        }
        Ok(())
    })
}

/// The last [`HISTORY`] values of a number, 4 bytes each. The buffer doubles until it has room for
/// all of them. It never reaches 1 KiB, from which the host leg counts blocks, however long a test
/// is followed. Live: the buffer.
fn numbers(_plan: &mut Plan) -> Step {
    let mut history: Vec<f32> = Vec::new();
    Box::new(move |i| {
        if history.len() == HISTORY {
            history.remove(0);
        }
        history.push(i as f32);
        Ok(())
    })
}

/// A buffer of the host that doubles as it fills, and is emptied but not freed. Live: its capacity,
/// which it reaches before the middle.
fn host_buffer(plan: &mut Plan) -> Step {
    let (every, ints) = (plan.span(), plan.size());
    let mut buffer: Vec<u64> = Vec::new();
    Box::new(move |i| {
        if i % every == 0 {
            buffer.clear();
        }
        buffer.extend((0..ints as u64).map(|int| int + i as u64));
        Ok(())
    })
}
