//! Ranks as threads, each with its own thread of the test.

use super::*;

/// Runs `work` on each of `size` ranks at the same time, and returns their results.
fn ranks_of<T: Send>(size: u64, work: impl Fn(&Rank) -> T + Sync) -> Vec<T> {
    let id = hub::start().unwrap();
    let (id, work) = (&id, &work);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..size)
            .map(|number| {
                scope.spawn(move || {
                    let (rank, ticket) = Rank::join(id, [number, size], (0, 0)).unwrap();
                    assert_eq!(rank.wait(ticket).unwrap().status, Status::Done);
                    work(&rank)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn request(work: RankWork, peer: u64, data: &[u8]) -> Request {
    let length = data.len() as u64;
    Request { ticket: 0, work, kind: 1, operation: 0, peer, length, data: Some(data.to_vec()) }
}

#[test]
fn ranks_meet_through_the_id() {
    let sums = ranks_of(4, |rank| {
        let request = request(RankWork::AllReduce, 0, &[rank.number as u8, 1]);
        rank.wait(rank.send(request).unwrap()).unwrap().data
    });
    assert_eq!(sums, vec![Some(vec![6, 4]); 4]);
}

#[test]
fn pairs_receive_in_the_order_of_sending() {
    let received = ranks_of(2, |rank| {
        let other = 1 - rank.number;
        // Both receive first, as in a group.
        let receipts =
            [(); 2].map(|()| rank.send(request(RankWork::Receive, other, &[0])).unwrap());
        for value in [1, 2] {
            let sent = request(RankWork::Send, other, &[10 * rank.number as u8 + value]);
            let ticket = rank.send(sent).unwrap();
            assert_eq!(rank.wait(ticket).unwrap().status, Status::Done);
        }
        receipts.map(|ticket| rank.wait(ticket).unwrap().data.unwrap()[0])
    });
    assert_eq!(received, [[11, 12], [1, 2]]);
}

#[test]
fn a_rank_that_leaves_fails_the_calls_of_the_others() {
    let statuses = ranks_of(2, |rank| {
        (rank.number == 0).then(|| {
            let collective = rank.send(request(RankWork::AllReduce, 0, &[1])).unwrap();
            let receipt = rank.send(request(RankWork::Receive, 1, &[1])).unwrap();
            [collective, receipt].map(|ticket| rank.wait(ticket).unwrap().status)
        })
    });
    assert_eq!(statuses, [Some([Status::Gone; 2]), None]);
}

#[test]
fn an_id_that_no_hub_made_and_a_rank_that_is_taken_are_refused() {
    assert!(Rank::join(&[0; hub::ID], [0, 1], (0, 0)).is_err());
    let id = hub::start().unwrap();
    let (_first, _) = Rank::join(&id, [0, 2], (0, 0)).unwrap();
    let (second, ticket) = Rank::join(&id, [0, 2], (0, 0)).unwrap();
    assert_eq!(second.wait(ticket).unwrap().status, Status::Mismatch);
}

#[test]
fn large_contributions_of_one_thread_do_not_block_it() {
    let id = hub::start().unwrap();
    let joined = [0, 1].map(|number| Rank::join(&id, [number, 2], (0, 0)).unwrap());
    let data = vec![1; 4 << 20];
    let tickets = [0, 1].map(|rank| {
        let rank: &Rank = &joined[rank].0;
        [(); 3].map(|()| rank.send(request(RankWork::AllReduce, 0, &data)).unwrap())
    });
    for ((rank, _), tickets) in joined.iter().zip(tickets) {
        for ticket in tickets {
            assert_eq!(rank.wait(ticket).unwrap().data.unwrap()[..2], [2, 2]);
        }
    }
}
