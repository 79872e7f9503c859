//! Exact nearest neighbours in three dimensions.

pub(crate) type Point = [f64; 3];

/// Points sorted by their first coordinate: a query walks outwards and stops where that coordinate alone is too far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Nearest {
    points: Vec<(Point, u32)>,
}

impl Nearest {
    /// `points` have finite coordinates and distinct ids.
    pub fn new(mut points: Vec<(Point, u32)>) -> Self {
        points.sort_by(|a, b| a.0[0].total_cmp(&b.0[0]).then(a.1.cmp(&b.1)));
        Nearest { points }
    }

    pub fn ids(&self) -> impl Iterator<Item = u32> {
        self.points.iter().map(|&(_, id)| id)
    }

    /// Ids of the `k` points nearest to `at` among those that `keep` admits, by (distance, id); fewer if there are fewer.
    pub fn query(&self, at: &Point, k: usize, keep: impl Fn(u32) -> bool) -> Vec<u32> {
        let mut best: Vec<(f64, u32)> = Vec::with_capacity(k + 1);
        let mut above = self.points.partition_point(|(p, _)| p[0] < at[0]);
        let mut below = above;
        loop {
            let up = self.points.get(above).map(|(p, _)| p[0] - at[0]);
            let down = below.checked_sub(1).map(|i| at[0] - self.points[i].0[0]);
            let goes_up = match (up, down) {
                (None, None) => break,
                (Some(up), Some(down)) => up <= down,
                (up, _) => up.is_some(),
            };
            let index = if goes_up { above } else { below - 1 };
            let gap = if goes_up { up } else { down }.unwrap_or(f64::INFINITY);
            // Equal distances go on, so that ties are settled by id and not by the order of the walk.
            if best.len() == k && best.last().is_none_or(|worst| gap * gap > worst.0) {
                break;
            }
            if goes_up {
                above += 1;
            } else {
                below -= 1;
            }
            let (point, id) = self.points[index];
            if keep(id) {
                insert(&mut best, k, (square_distance(&point, at), id));
            }
        }
        best.into_iter().map(|(_, id)| id).collect()
    }
}

fn square_distance(a: &Point, b: &Point) -> f64 {
    (a[0] - b[0]).powi(2) + (a[1] - b[1]).powi(2) + (a[2] - b[2]).powi(2)
}

/// Keeps `best` sorted by (distance, id) and at most `k` long.
fn insert(best: &mut Vec<(f64, u32)>, k: usize, new: (f64, u32)) {
    let at = best.partition_point(|held| *held < new);
    if at < k {
        best.insert(at, new);
        best.truncate(k);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_walk_finds_what_a_full_scan_finds(
            points in prop::collection::vec(prop::array::uniform3(0_u8..12), 0..200),
            at in prop::array::uniform3(-2_i8..14), k in 1_usize..20, skip in 2_u32..5
        ) {
            let points: Vec<(Point, u32)> = points.iter().zip(0..).map(|(p, id)| (p.map(f64::from), id)).collect();
            let at = at.map(f64::from);
            let keep = |id: u32| !id.is_multiple_of(skip);
            let mut all: Vec<(f64, u32)> = points.iter().filter(|(_, id)| keep(*id))
                .map(|(p, id)| (square_distance(p, &at), *id)).collect();
            all.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            let want: Vec<u32> = all.into_iter().take(k).map(|(_, id)| id).collect();
            prop_assert_eq!(Nearest::new(points).query(&at, k, keep), want);
        }
    }
}
