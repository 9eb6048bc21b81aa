//! The second release: hotels know their nights, and each trip is insured. It takes over the runs of the first release:
//! their events are upgraded when they are read, and the new step runs for them too.

use std::sync::Arc;

use serde_json::{Value, json};
use workflow_core::prelude::*;

use crate::agency::Agency;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(start)]
pub(crate) struct Trip {
    pub(crate) traveller: String,
    pub(crate) flight: String,
    pub(crate) hotel: String,
    pub(crate) car: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
pub(crate) struct Flight {
    number: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(version = 2, upgrade = hotel_from)]
pub(crate) struct Hotel {
    number: String,
    nights: u32,
}

/// Version 1 had no nights: all were booked for one.
fn hotel_from(version: u32, mut hotel: Value) -> Result<Value, String> {
    if version != 1 {
        return Err(format!("there is no version {version}"));
    }
    hotel["nights"] = json!(1);
    Ok(hotel)
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
pub(crate) struct Insured {
    number: String,
}

/// The run waits here, for days if need be, and across releases.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(request, reply = bool)]
pub(crate) struct Confirm {
    question: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[event(stop)]
pub(crate) struct Booked {
    pub(crate) numbers: Vec<String>,
}

pub(crate) struct Trips {
    pub(crate) agency: Arc<Agency>,
}

#[workflow]
impl Trips {
    #[step]
    async fn book_flight(&self, trip: &Trip, info: &RunInfo, display: &Display) -> Result<Flight, StepError> {
        Ok(Flight { number: self.agency.book("flight", &trip.flight, &trip.traveller, info, display)? })
    }

    #[step]
    async fn book_hotel(
        &self,
        trip: &Trip,
        _flight: &Flight,
        info: &RunInfo,
        display: &Display,
    ) -> Result<(Hotel, Confirm), StepError> {
        let number = self.agency.book("hotel", &trip.hotel, &trip.traveller, info, display)?;
        let Trip { traveller, flight, hotel, .. } = trip;
        let question = format!("{traveller}: {flight} and {hotel} are booked. Book the car as well?");
        Ok((Hotel { number, nights: 2 }, Confirm { question }))
    }

    #[step]
    async fn book_car(
        &self,
        trip: &Trip,
        flight: &Flight,
        hotel: &Hotel,
        confirmed: &Reply<Confirm>,
        info: &RunInfo,
        display: &Display,
    ) -> Result<Booked, StepError> {
        if !**confirmed {
            return Err(StepError::rejected(format!("{} does not want to travel", trip.traveller)));
        }
        let car = self.agency.book("car", &trip.car, &trip.traveller, info, display)?;
        Ok(Booked {
            numbers: vec![flight.number.clone(), format!("{} ({} nights)", hotel.number, hotel.nights), car],
        })
    }

    /// New: a run that waits since the first release is insured as soon as this release resumes it.
    #[step]
    async fn insure(
        &self,
        trip: &Trip,
        _flight: &Flight,
        info: &RunInfo,
        display: &Display,
    ) -> Result<Insured, StepError> {
        Ok(Insured { number: self.agency.book("insurance", "storno", &trip.traveller, info, display)? })
    }

    #[step(on_end)]
    async fn cancel_insurance(
        &self,
        insured: &Insured,
        info: &RunInfo,
        display: &Display,
    ) -> Result<(), StepError> {
        self.agency.cancel(&insured.number, info, display)
    }

    /// Runs at every end but a completed one, after `cancel_hotel`: the latest booking is undone first.
    #[step(on_end)]
    async fn cancel_flight(
        &self,
        flight: &Flight,
        info: &RunInfo,
        display: &Display,
    ) -> Result<(), StepError> {
        self.agency.cancel(&flight.number, info, display)
    }

    #[step(on_end)]
    async fn cancel_hotel(&self, hotel: &Hotel, info: &RunInfo, display: &Display) -> Result<(), StepError> {
        self.agency.cancel(&hotel.number, info, display)
    }
}
